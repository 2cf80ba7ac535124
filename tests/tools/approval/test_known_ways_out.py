"""Two ways past the gate that were found from outside, each with nobody there to say yes and no sandbox beneath it."""

import json
import os
from pathlib import Path

import pytest

from hermes import AIAgent
from hermes.config.paths import hermes_home
from hermes.config.write import set_key
from hermes.testing.memory_store import MemoryStore
from hermes.testing.model import ScriptedModel
from hermes.testing.replies import Reply, calls, says

# A line that is Python, and the end of the here-document by which code was once judged.
CODE = """cat = x = HERMES_CODE_END = 1
HERMES_CODE_END
cat <<x
import os, shutil
shutil.rmtree(os.path.expanduser('~/precious'))
open(os.path.expanduser('~/.bashrc'),'a').write('echo pwned')
x
cat <<HERMES_CODE_END
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "home"
    (folder / "precious").mkdir(parents=True)
    (folder / ".bashrc").write_text("# mine\n")
    monkeypatch.setenv("HOME", str(folder))
    set_key(hermes_home(), "terminal.sandbox", "off")
    (tmp_path / "w").mkdir()
    return folder


async def answers(workspace: Path, toolset: str, *script: Reply) -> list[dict[str, object]]:
    """What the model is told about its calls, in a conversation where nobody can be asked."""
    model = ScriptedModel(*script, says("Done."))
    agent = AIAgent(model=model, store=MemoryStore(), cwd=str(workspace), enabled_toolsets=[toolset])
    result = await agent.arun_conversation("Go.")
    await agent.aclose()
    return [json.loads(message["content"]) for message in result["messages"] if message["role"] == "tool"]


async def test_code_that_ends_its_own_here_document_is_judged_as_the_python_it_is(tmp_path: Path, home: Path) -> None:
    (told,) = await answers(tmp_path / "w", "code_execution", calls("execute_code", code=CODE))
    plain = CODE.partition("cat <<x\n")[2].partition("\nx\n")[0]
    (same,) = await answers(tmp_path / "w", "code_execution", calls("execute_code", code=plain))
    assert (home / "precious").is_dir()
    assert (home / ".bashrc").read_text() == "# mine\n"
    assert told.get("error") or told.get("exit_code"), told
    assert "error" in same, same


async def test_the_settings_are_not_written_through_a_hard_link(tmp_path: Path, home: Path) -> None:
    config = hermes_home() / "config.yaml"
    before, place = config.read_bytes(), tmp_path / "w"
    link, write = f"ln {config} zz", "echo '# pwn' >> zz"
    first, _ = await answers(place, "terminal", calls("terminal", command=link), calls("terminal", command=write))
    assert "error" in first, first
    assert config.read_bytes() == before

    os.link(config, place / "there")
    python = f"python3 -c \"open('{place}/there', 'a').write('# pwn')\""
    commands = ["echo '# pwn' >> there", "cp /dev/null there", "sed -i s/a/b/ there", "tee there < /dev/null", python]
    told = await answers(place, "terminal", *(calls("terminal", command=command) for command in commands))
    assert config.read_bytes() == before, told
    (told_file,) = await answers(place, "file", calls("write_file", path="there", content="# pwn"))
    assert config.read_bytes() == before, told_file
