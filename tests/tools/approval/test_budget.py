"""No text stalls the judge: work is counted in steps, and one that takes too many asks."""

import os
import sys
from dataclasses import replace

import pytest

from hermes.scope import TurnScope
from hermes.seams import Action
from hermes.tools.approval.analysis import View, analyse
from hermes.tools.approval.effects_model import STEPS, TOO_INTRICATE, Analysis, Budget, TooIntricate
from hermes.tools.approval.effects_model import keys as known_keys
from hermes.tools.approval.gate import DiskView
from hermes.tools.approval.patterns import search
from hermes.tools.approval.policy import Policy, PolicyRule
from hermes.tools.terminal.simple_commands import segments
from tests.tools.approval.programs import program
from tests.tools.approval.test_gate import Room

_PROGRAMS = 10_000 if os.environ.get("HERMES_TEST_FULL") == "1" else 300
_CALLS = 30 * STEPS  # of functions, for a whole budget; a look at one thing takes a few of them
_FIB = "def fib(n):\n    return n if n < 2 else fib(n - 1) + fib(n - 2)\n"
_TREE = "def walk(node):\n    return [node.name, *walk(node.left), *walk(node.right)]\nprint(walk(root))\n"


def _branches(count: int) -> str:
    body = "".join(f"if q{number}:\n    a = a + 'x'\nelse:\n    a = 'y' + a\n" for number in range(count))
    return f"import os\na = ''\n{body}os.system(a)\n"


# Small texts, and long ones of one kind, that took seconds to minutes or all memory.
_CODE = {
    **{
        f"recursion and {name}": f"import {name}\n{_FIB}"
        for name in ("urllib.parse", "socket", "requests", "http.client")
    },
    "a walk over a tree": f"import requests\n{_TREE}",
    **{f"{count} branches": _branches(count) for count in (8, 20, 200)},
    "texts that double": "import os\na0 = 'x'\n"
    + "".join(f"a{n + 1} = a{n} + a{n}\n" for n in range(900))
    + "os.system(a900)",
    "lists that double": "import subprocess\na = ['x']\n" + "a = [*a, *a]\n" * 2000 + "subprocess.run(a)",
    "loops in loops": "".join(f"{' ' * n}while 1:\n" for n in range(95)) + (" " * 95 + "x.append(1)\n") * 500,
    "a text with 15,000 places": "import os\na = 'x'\nos.system(f'" + "{a}" * 15_000 + "')",
    "functions that call each other": "".join(
        f"def f{n}(x): return f{(n * 3 + 1) % 300}(x) + f{(n * 5 + 2) % 300}(x)\n" for n in range(300)
    )
    + "import os\nos.system(f0(1))",
}
_COMMANDS = {
    "trimming": f"x={'a' * 1000}; echo {'${x%%*b*}' * 200}\n" * 20,
    "braces that nothing closes": "echo " + "{" * 2900,
    "links to links": "".join(f"ln -s a{n} a{n + 1};" for n in range(3000)),
    "many words": ("rm " + "a " * 1400 + "\n") * 20,
    "texts that triple": "node -e '" + 'a="x"+a+a+a;' * 220 + 'require("child_process").exec(a)\'',
    "patterns without an end": "node -e '" + "/[" * 30_000 + "'",
    "quotes without an end": "perl -e '" + "q(" * 30_000 + "'",
    "nested defaults": "echo " + "${a:-" * 100 + "}" * 100 + "\n",
    "options by the hundred": "docker run " + "-v /:/a " * 350 + " x ls\n",
    "functions that multiply": "".join(f"f{n}(){{ f{n + 1}; f{n + 1}; f{n + 1}; }};" for n in range(60)) + "f0",
    "aliases that multiply": "".join(f"alias a{n}='a{n + 1}; a{n + 1}';" for n in range(60)) + "a0",
    "letters that unfold": "\ufdfa" * 20_000,
}


def _counted(judge_it: object) -> int:
    count = 0

    def counted(_frame: object, event: str, _arg: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(counted)
    try:
        judge_it()  # type: ignore[operator]  # any callable
    finally:
        sys.setprofile(before)
    return count


@pytest.mark.parametrize("name", _CODE)
def test_code_that_stalled_takes_a_bounded_number_of_calls(name: str) -> None:
    View().code("print(1)")  # what is made once is not counted
    assert _counted(lambda: View().code(_CODE[name])) < _CALLS


@pytest.mark.parametrize("name", _COMMANDS)
def test_commands_that_stalled_take_a_bounded_number_of_calls(name: str) -> None:
    analyse("ls")
    assert _counted(lambda: analyse(_COMMANDS[name])) < _CALLS


@pytest.mark.parametrize("module", ["urllib.parse", "socket", "requests", "http.client", "json", "os"])
def test_a_function_that_calls_itself_twice_is_harmless(module: str) -> None:
    assert View().code(f"import {module}\n{_FIB}print(fib(20))\n").dangers == ()


def test_twice_the_branches_are_at_most_twice_the_steps() -> None:
    def steps(count: int) -> int:
        budget = Budget(10**9)
        View(budget=budget).code(_branches(count))
        return 10**9 - budget.left

    assert steps(200) <= 2.5 * steps(100) <= 7 * steps(50)


def test_generated_programs_all_get_an_answer_within_the_budget() -> None:
    over = []
    for seed in range(_PROGRAMS):
        kind, text = program(seed)
        budget = Budget()
        analysis: Analysis = getattr(View(budget=budget), kind)(text)
        # Only what is charged after it was done goes over, and each such thing is small.
        if budget.left < -STEPS // 2 or (budget.left < 0 and TOO_INTRICATE not in analysis.unknown):
            over.append((seed, budget.left))
    assert over == []


@pytest.mark.parametrize("seed", range(0, 300, 23))
def test_the_same_text_gets_the_same_answer(seed: int) -> None:
    kind, text = program(seed)
    assert getattr(View(), kind)(text) == getattr(View(), kind)(text)


def test_what_was_found_before_the_budget_ended_stays() -> None:
    keys = [effect.key for effect in View(budget=Budget(400)).command("rm -rf /\n" + "ls\n" * 400).dangers]
    assert keys == ["recursive delete", known_keys()["intricate"]]


def test_a_spent_budget_lets_nothing_pass_later() -> None:
    budget = Budget(1)
    with pytest.raises(TooIntricate):
        budget.spend(2)
    assert [effect.kind for effect in View(budget=budget).command("ls").dangers] == ["intricate"]
    assert [effect.kind for effect in View(budget=budget).code("print(1)").dangers] == ["intricate"]


async def test_what_is_too_intricate_is_asked_about_with_a_sentence_that_says_so() -> None:
    room = Room("deny")
    assert not (await room.run(_COMMANDS["functions that multiply"])).allowed
    (question,) = room.asked
    assert known_keys()["intricate"] in question.description
    assert any(TOO_INTRICATE in line for line in question.lines)
    assert "always" not in question.choices


async def test_what_is_too_intricate_is_denied_when_nobody_is_there() -> None:
    denied = await Room(alone=True).run(_COMMANDS["functions that multiply"])
    assert (denied.allowed, known_keys()["intricate"] in denied.reason) == (False, True)


async def test_no_allow_rule_covers_what_is_too_intricate() -> None:
    policy = Policy(rules=(PolicyRule(action="allow", command="*"),))
    assert not (await Room(alone=True, policy=policy).run(_COMMANDS["functions that multiply"])).allowed


@pytest.mark.parametrize("policy", [Policy(mode="off"), Policy(cron_mode="approve")])
async def test_asking_cannot_be_switched_off_for_what_may_be_on_the_floor(policy: Policy) -> None:
    action = Action(kind="command", tool="terminal", text=_COMMANDS["functions that multiply"], route="cron")
    assert not (await Room(policy=policy).gate.decide(action, TurnScope())).allowed
    plain = Action(kind="command", tool="terminal", text="rm -rf build", cwd="/work/app", route="cron")
    assert (await Room(policy=policy).gate.decide(plain, TurnScope())).allowed


async def test_a_script_file_that_is_too_intricate_asks() -> None:
    bodies = {"/work/app/x.sh": _COMMANDS["functions that multiply"].encode()}
    sight = DiskView(home="/home/me", own_home="/home/me/.hermes", workspace="/work/app", read_script=bodies.get)
    gate = replace(Room(alone=True).gate, sight=sight)
    action = Action(kind="command", tool="terminal", text="bash x.sh", cwd="/work/app")
    assert not (await gate.decide(action, TurnScope())).allowed


@pytest.mark.parametrize(
    "unit",
    [
        "\nrm x ",
        "|base64 -d ",
        "|curl x",
        "(find x ",
        ";git reset x ",
        "a",
        "\ndd x ",
        "<<A ",
        ";pkill x ",
        "x=1 ",
        "/",
    ],
)
def test_the_second_net_takes_no_longer_than_its_text_is(unit: str) -> None:
    """The expressions run in C, where no call is counted; a bounded repeat is what keeps them from trying for ever."""
    text = (unit * 60_000)[:60_000]
    assert _counted(lambda: (search(text), search(text, is_hard=True))) < 200_000


def test_guidance_gives_up_on_a_long_text_and_on_deep_nesting() -> None:
    assert len(segments("a;" * 1_000_000)) < 1_000_000
    assert segments("$(" * 700 + "a" + ")" * 700) is not None
