"""The blocks of docs/library.md, pasted into a file of another project: a strict type checker finds nothing in it."""

import subprocess
import sys
import venv
from pathlib import Path

import pytest

from tests.docs.test_blocks import ROOT, blocks

WRONG = "AIAgent(max_iteration=3)\nAIAgent(max_iterations='3')\nreveal_type(AIAgent().chat('', output_schema=int))\n"


@pytest.fixture
def pasted(tmp_path: Path) -> Path:
    """A file with all programs of the page, in a folder that has nothing else."""
    text = (ROOT / "docs/library.md").read_text(encoding="utf-8")
    programs = [block.text for block in blocks(text) if block.language == "python" and block.title is None]
    assert len(programs) > 12
    file = tmp_path / "project" / "pasted.py"
    file.parent.mkdir()
    file.write_text("\n".join(programs), encoding="utf-8")
    return file


def checked(python: Path, file: Path) -> str:
    """What mypy says about `file`, by its strictest rules and without any settings of ours."""
    command = [str(python), "-P", "-m", "mypy", "--strict", "--config-file=", file.name]
    environ = {"PATH": "/usr/bin:/bin", "HOME": str(file.parent)}
    return subprocess.run(command, cwd=file.parent, env=environ, capture_output=True, text=True, check=False).stdout


def test_the_blocks_have_no_error_and_no_untyped_call(pasted: Path) -> None:
    assert checked(Path(sys.executable), pasted) == "Success: no issues found in 1 source file\n"

    pasted.write_text(f"from hermes import AIAgent\n{WRONG}", encoding="utf-8")
    said = checked(Path(sys.executable), pasted)
    assert 'did you mean "max_iterations"?' in said
    assert '"max_iterations" to "AIAgent" has incompatible type "str"' in said.replace("Argument ", "")
    assert 'Revealed type is "int"' in said.replace("builtins.", "")


@pytest.mark.full
def test_the_same_where_the_package_is_installed_into_an_empty_environment(pasted: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "env", with_pip=True)
    python = tmp_path / "env" / "bin" / "python"
    install = [str(python), "-m", "pip", "install", "-q", "-c", f"{ROOT}/constraints.txt", str(ROOT), "mypy"]
    done = subprocess.run(install, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert checked(python, pasted) == "Success: no issues found in 1 source file\n"
