"""`hermes model local`: a model file on this machine takes the place of all others."""

from pathlib import Path

import pytest

from hermes.models.box.files import has_engine
from tests.surfaces.cli.conftest import Run


@pytest.fixture
def gguf(tmp_path: Path) -> Path:
    file = tmp_path / "own.gguf"
    file.write_bytes(b"GGUF" + bytes(60))
    return file


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [("gone.gguf", None, "No such file"), ("text.gguf", b"hello", "is no GGUF file")],
)
def test_what_is_no_model_file_changes_nothing(
    run: Run, home: Path, tmp_path: Path, name: str, content: bytes | None, told: str
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    done = run("model", "local", name)
    assert done.returncode == 1
    assert told in done.stderr
    assert not (home / "config.yaml").exists()


def test_a_file_beside_another_model_is_a_usage_error(run: Run, gguf: Path) -> None:
    done = run("model", "qwen3", str(gguf))
    assert done.returncode == 2
    assert "takes a file" in done.stderr


@pytest.mark.real
@pytest.mark.skipif(not has_engine(), reason="xllamacpp is not installed: ./hermes --install-extra local")
def test_a_file_of_ones_own_is_written_down_and_what_is_wrong_with_it_told(run: Run, gguf: Path) -> None:
    done = run("model", "local", gguf.name)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["model.provider = local", f"model.default = {gguf}"]
    assert run("model").stdout == f"{gguf} in the box (local, model.provider)\n"
    asked = run("chat", "-q", "Hello?")
    assert asked.returncode != 0
    assert "own.gguf could not be loaded" in asked.stderr
