"""Rules, scopes and the order in which a decision is made."""

import pytest

from hermes.config.sections.terminal import BACKENDS
from hermes.errors import ConfigError
from hermes.tools.approval import analyse
from hermes.tools.approval.decide import REFUSED, Context, Verdict, decide
from hermes.tools.approval.policy import ContainerPolicy, Grant, Policy, PolicyRule, binding, check_examples, path_class


def verdict(command: str, policy: Policy | None = None, *grants: Grant, **context: object) -> Verdict:
    analysis = analyse(command, cwd="/work/app", home="/home/me")
    return decide(analysis, policy or Policy(), grants, Context(**context))  # type: ignore[arg-type]  # plain keywords


def test_harmless_is_allowed_dangerous_is_asked_the_floor_is_denied() -> None:
    assert verdict("ls -la").outcome == "allow"
    assert verdict("rm -rf build").outcome == "ask"
    floor = verdict("rm -rf /")
    assert (floor.outcome, floor.is_hardline) == ("deny", True)
    assert floor.reason.startswith("BLOCKED (hardline):")


def test_the_floor_holds_with_asking_off_and_with_every_grant() -> None:
    off = Policy(mode="off", allowlist=("recursive delete",), rules=(PolicyRule(action="allow", command="rm *"),))
    grant = Grant(scope="always", key="recursive delete", path_class="root:/")
    assert verdict("rm -rf /", off, grant, is_bypassed=True).outcome == "deny"
    assert verdict("rm -rf build", off).outcome == "allow"


def test_deny_wins_over_allow() -> None:
    policy = Policy(rules=(PolicyRule(action="allow", command="git *"), PolicyRule(action="deny", command="git push")))
    assert verdict("git push origin main", policy).outcome == "deny"
    assert verdict("git status", policy).outcome == "allow"
    assert verdict("ls && git push", policy).outcome == "deny"


def test_a_deny_glob_holds_with_asking_off() -> None:
    assert verdict("Npm Publish", Policy(mode="off", deny=("npm publish*",))).outcome == "deny"


def test_a_script_whose_every_part_is_allowed_never_asks() -> None:
    policy = Policy(
        rules=(PolicyRule(action="allow", command="rm -rf build"), PolicyRule(action="allow", command="npm *"))
    )
    assert verdict("rm -rf build && npm run build", policy).outcome == "allow"
    assert verdict("rm -rf build && rm -rf src", policy).outcome == "ask"


def test_an_allow_rule_with_paths_covers_those_paths_only() -> None:
    policy = Policy(rules=(PolicyRule(action="allow", command="rm *", paths=("build/**", "build")),))
    assert verdict("rm -rf build", policy).outcome == "allow"
    assert verdict("rm -rf build src", policy).outcome == "ask"


def test_an_unknown_part_is_never_covered_by_a_rule() -> None:
    policy = Policy(rules=(PolicyRule(action="allow", command=""),))
    assert verdict("$CMD build", policy).outcome == "ask"


def test_an_ask_rule_asks_for_a_harmless_command() -> None:
    policy = Policy(rules=(PolicyRule(action="ask", hosts=("*.prod.example",)),))
    assert verdict("curl https://db.prod.example/x", policy).outcome == "ask"
    assert verdict("curl https://example.org/x", policy).outcome == "allow"


def test_session_grants_hold_for_the_category_in_the_place_that_was_shown() -> None:
    grant = Grant(scope="session", key="recursive delete", path_class="workspace", session_id="s1")
    assert verdict("rm -rf dist", None, grant, session_id="s1").outcome == "allow"
    assert verdict("rm -rf dist", None, grant, session_id="s2").outcome == "ask"
    assert verdict("rm -rf /srv/data/x", None, grant, session_id="s1").outcome == "ask"
    assert verdict("git push -f", None, grant, session_id="s1").outcome == "ask"


def test_a_named_root_is_its_own_class() -> None:
    effect = analyse("rm -rf /srv/data/x", cwd="/work/app").dangers[0]
    assert path_class(effect) == "root:/srv/data"


def test_once_is_bound_to_command_folder_and_script() -> None:
    shown = binding("bash deploy.sh", "/work/app", {"/work/app/deploy.sh": b"echo 1"})
    assert shown == binding("bash deploy.sh", "/work/app", {"/work/app/deploy.sh": b"echo 1"})
    assert shown != binding("bash deploy.sh", "/work/app", {"/work/app/deploy.sh": b"echo 2"})
    assert shown != binding("bash deploy.sh", "/work", {"/work/app/deploy.sh": b"echo 1"})
    grant = Grant(scope="once", key="recursive delete", binding=shown)
    assert verdict("rm -rf build", None, grant, binding=shown).outcome == "allow"
    assert verdict("rm -rf build", None, grant, binding="other").outcome == "ask"


def test_task_grants_end_with_the_task() -> None:
    grant = Grant(scope="task", key="recursive delete", binding="b", task_id="t1")
    assert verdict("rm -rf build", None, grant, binding="b", task_id="t1").outcome == "allow"
    assert verdict("rm -rf build", None, grant, binding="b", task_id="t2").outcome == "ask"


def test_what_was_not_understood_is_never_granted_broadly() -> None:
    grant = Grant(scope="always", key="command could not be understood")
    asked = verdict("$CMD", None, grant)
    assert (asked.outcome, asked.scopes) == ("ask", ("once", "task"))


def test_containers_pass_the_same_gate_with_their_own_default() -> None:
    assert verdict("rm -rf /", backend="docker").outcome == "allow"
    assert verdict("rm -rf /", backend="docker", has_host_mounts=True).outcome == "deny"
    assert verdict("rm -rf x", Policy(containers=ContainerPolicy(inside="check")), backend="docker").outcome == "ask"
    assert (
        verdict("git push", Policy(rules=(PolicyRule(action="deny", command="git push"),)), backend="docker").outcome
        == "deny"
    )


def test_examples_of_a_rule_are_checked() -> None:
    check_examples(
        Policy(rules=(PolicyRule(action="deny", command="git push", match=("git push -f",), not_match=("git pull",)),))
    )
    wrong = Policy(rules=(PolicyRule(action="deny", name="no push", command="git push", match=("git pull",)),))
    with pytest.raises(ConfigError, match="no push"):
        check_examples(wrong)
    with pytest.raises(ConfigError, match="must not"):
        check_examples(Policy(rules=(PolicyRule(action="deny", command="git *", not_match=("git pull",)),)))


def test_the_refusal_never_says_how_to_lift_the_rule() -> None:
    for word in ("config", "mode", "allowlist", "approvals", "yolo", "setting"):
        assert word not in REFUSED.lower()


def test_a_program_that_nobody_knows_asks_until_a_rule_names_it() -> None:
    own = Policy(rules=(PolicyRule(action="allow", command="frobnicate"),))
    asked = decide(analyse("frobnicate --all"), Policy(), (), Context())

    assert (asked.outcome, asked.keys, asked.scopes) == ("ask", ("program that is not known here",), ("once", "task"))
    assert decide(analyse("frobnicate --all && ls"), own, (), Context()).outcome == "allow"
    assert decide(analyse("frobnicate --all && fizzle"), own, (), Context()).outcome == "ask"
    assert decide(analyse("./frobnicate && npx fizzle"), Policy(), (), Context()).outcome == "allow"


def test_of_the_backends_only_machines_with_somebodys_files_have_the_floor() -> None:
    guarded = [backend for backend in (*BACKENDS, "podman", "") if verdict("rm -rf /", backend=backend).is_hardline]
    assert guarded == ["local", "ssh", "podman", ""]
