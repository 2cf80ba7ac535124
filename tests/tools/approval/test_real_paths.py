"""A file has one truth however it is named: hard links lead to the guarded file they are."""

from dataclasses import replace
from pathlib import Path

import pytest

from hermes.scope import TurnScope
from hermes.seams import Action, Decision
from hermes.tools.approval.gate import ApprovalGate, DiskView
from hermes.tools.approval.real_paths import RealPaths
from tests.tools.approval.test_gate import Room

GUARDED = ("config.yaml", ".env", "state.db", "approvals.json", "hooks/on_start.py", "profiles/work/config.yaml")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    for name in (*GUARDED, "cache/page.html"):
        file = tmp_path / ".hermes" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("kept")
    (tmp_path / ".bashrc").write_text("kept")
    (tmp_path / "work").mkdir()
    return tmp_path


def _gate(home: Path) -> ApprovalGate:
    own = str(home / ".hermes")
    sight = DiskView(home=str(home), own_home=own, workspace=str(home / "work"), real=RealPaths(str(home), own))
    return replace(Room("always").gate, sight=sight)  # whoever is asked says yes to everything


async def _decide(home: Path, text: str, kind: str = "command") -> Decision:
    action = Action(kind=kind, tool="terminal", text=text, cwd=str(home / "work"))  # type: ignore[arg-type]  # plain text
    return await _gate(home).decide(action, TurnScope())


@pytest.mark.parametrize("name", GUARDED)
@pytest.mark.parametrize(
    "write",
    [
        "echo x >> zz",
        "echo x > ./zz",
        "echo x | tee -a zz",
        "cp /dev/stdin zz <<< x",
        "dd if=/dev/null of=zz",
        "sed -i s/a/b/ zz",
        "truncate -s 0 zz",
        "exec 3<>zz; echo x >&3",
        "cd .. && echo x >> work/zz",
        "python3 -c \"open('zz', 'a').write('x')\"",
        'node -e \'require("fs").appendFileSync("zz", "x")\'',
        "ln zz yy",
        "ln -s zz yy",
    ],
)
async def test_no_yes_lets_a_guarded_file_be_written_through_a_hard_link(home: Path, name: str, write: str) -> None:
    (home / "work" / "zz").hardlink_to(home / ".hermes" / name)
    decision = await _decide(home, write)
    assert (decision.allowed, decision.rule) == (False, "hardline")


@pytest.mark.parametrize("code", ["open('zz', 'w')", "__import__('pathlib').Path('zz').write_text('x')"])
async def test_a_script_cannot_write_a_guarded_file_through_a_hard_link(home: Path, code: str) -> None:
    (home / "work" / "zz").hardlink_to(home / ".hermes" / "config.yaml")
    assert (await _decide(home, code, "code")).rule == "hardline"


async def test_a_file_tool_cannot_write_a_guarded_file_through_a_hard_link(home: Path) -> None:
    (home / "work" / "zz").hardlink_to(home / ".hermes" / "config.yaml")
    assert (await _decide(home, str(home / "work" / "zz"), "write")).rule == "hardline"


@pytest.mark.parametrize(
    "command",
    [
        "ln ~/.hermes/config.yaml zz",
        "ln -s ~/.hermes/config.yaml zz",
        "ln -sf ../.hermes/.env .",
        "ln -t . ~/.hermes/config.yaml",
        "ln ~/.hermes/config.yaml",
        "link ~/.hermes/config.yaml zz",
        "cp -l ~/.hermes/config.yaml zz",
        "cp -s ~/.hermes/config.yaml zz",
        "mkdir sub; ln -s ../../.hermes/config.yaml sub/x",
        "python3 -c \"import os; os.link(os.path.expanduser('~/.hermes/config.yaml'), 'zz')\"",
        "python3 -c \"import os; os.symlink(os.path.expanduser('~/.hermes/config.yaml'), 'zz')\"",
        "python3 -c \"from pathlib import Path; Path('zz').hardlink_to(Path.home() / '.hermes/config.yaml')\"",
        'node -e \'require("fs").linkSync(process.env.HOME + "/.hermes/config.yaml", "zz")\'',
    ],
)
async def test_no_yes_gives_a_guarded_file_a_second_name(home: Path, command: str) -> None:
    assert (await _decide(home, command)).rule == "hardline"


async def test_a_second_name_of_a_shell_start_file_is_asked_about() -> None:
    assert not (await Room(alone=True).run("ln ~/.bashrc zz")).allowed


async def test_writing_a_shell_start_file_through_a_hard_link_is_asked_about(home: Path) -> None:
    (home / "work" / "zz").hardlink_to(home / ".bashrc")
    gate = replace(_gate(home), ask=None)
    action = Action(kind="command", tool="terminal", text="echo x >> zz", cwd=str(home / "work"))
    assert not (await gate.decide(action, TurnScope())).allowed


async def test_links_among_the_projects_own_files_are_nobodys_business(home: Path) -> None:
    gate = replace(_gate(home), ask=None)
    (home / "work" / "a").write_text("x")
    (home / "work" / "b").hardlink_to(home / "work" / "a")
    for text in ("echo x >> b", "ln a c", "ln -s a d", "cp -l a e", "ln -s ../.hermes/cache/page.html p"):
        action = Action(kind="command", tool="terminal", text=text, cwd=str(home / "work"))
        assert (await gate.decide(action, TurnScope())).allowed


def test_a_file_that_is_replaced_is_known_again(home: Path) -> None:
    real, config = RealPaths(str(home), str(home / ".hermes")), home / ".hermes" / "config.yaml"
    link = home / "work" / "zz"
    link.hardlink_to(config)
    assert real(str(link)) == str(config)
    (home / ".hermes" / "new").write_text("other")
    (home / ".hermes" / "new").replace(config)
    link.unlink()
    link.hardlink_to(config)
    assert real(str(link)) == str(config)


def test_a_name_that_no_disk_can_hold_stays_as_it_is(home: Path) -> None:
    real = RealPaths(str(home), str(home / ".hermes"))
    assert [real(name) for name in ("/a\0b", "/" + "x" * 5000)] == ["/a\0b", "/" + "x" * 5000]
