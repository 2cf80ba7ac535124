"""`hermes prompt show`: what the model is told, part by part."""

import json
from pathlib import Path

from tests.surfaces.cli.conftest import Run

MODEL = ("--model", "m", "--provider", "ollama")


def test_each_part_is_shown_with_its_tokens_and_where_it_comes_from(run: Run, tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("Use tabs.")
    done = run("prompt", "show", *MODEL)
    assert done.returncode == 0, done.stderr
    assert "── 5-project · context · 31 tokens · AGENTS.md\n# Project Context\n" in done.stdout
    assert "rules: AGENTS.md" in done.stderr
    text = run("prompt", "show", *MODEL, "--text").stdout
    assert text.startswith("You are Hermes")
    assert "── " not in text


def test_a_script_gets_it_all(run: Run, tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("Use tabs.")
    facts = json.loads(run("prompt", "show", *MODEL, "--json", "-t", "file").stdout)
    assert [part["name"] for part in facts["parts"]] == [
        "0-identity",
        "5-surroundings",
        "6-platform",
        "5-project",
        "9-date",
    ]
    assert [tool["name"] for tool in facts["tools"]] == ["patch", "read_file", "search_files", "write_file"]
    assert facts["tokens"] == sum(one["tokens"] for one in (*facts["parts"], *facts["tools"]))
    assert (facts["profile"], facts["notices"]) == ("full", ["rules: AGENTS.md"])
    less = json.loads(run("prompt", "show", *MODEL, "--json", "--ignore-rules").stdout)
    assert "5-project" not in [part["name"] for part in less["parts"]]


def test_it_is_shown_before_a_model_is_configured(run: Run) -> None:
    done = run("prompt", "show", "--json")
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    assert facts["tokens"] > 1_000
    assert "terminal" in [tool["name"] for tool in facts["tools"]]
    assert "no model is configured" in done.stderr
    other = run("prompt", "show", "--provider", "nobody")
    assert other.returncode != 0
    assert "nobody" in other.stderr
