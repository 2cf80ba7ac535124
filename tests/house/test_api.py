"""docs/api.md says what the code promises, and the other pages use nothing else."""

import ast
import re
from pathlib import Path

import pytest

from scripts import api_page

ROOT = Path(__file__).parents[2]

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
# Of one example each: what a page shows is how the parts fit together, not something to build upon.
ONLY_SHOWN = {
    "hermes.config.sections": {"agent"},
    "hermes.tools.calling.pool": {"DaemonPool"},
    "hermes.tools.supervisor.supervisor": {"ProcessSupervisor"},
}


def test_the_page_is_current() -> None:
    assert api_page.PAGE.read_text(encoding="utf-8") == api_page.page(), "run: python scripts/api_page.py"


@pytest.mark.parametrize("module", api_page.PUBLIC)
def test_every_module_promises_something(module: str) -> None:
    assert api_page.public_names(module)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_what_a_page_imports_is_promised(page: Path) -> None:
    strange = {
        f"{module}.{name}"
        for module, name in _imports(page.read_text(encoding="utf-8"))
        if module.split(".")[0] == "hermes" and name not in _promised(module) | ONLY_SHOWN.get(module, set())
    }
    assert strange == set()


def _promised(module: str) -> set[str]:
    # `hermes.testing.replies` and the like: the package exports what they define.
    package = module if module in api_page.PUBLIC else module.rpartition(".")[0]
    return set(api_page.public_names(package)) if package in api_page.PUBLIC else set()


def _imports(text: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for block in re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        nodes = (node for node in ast.walk(ast.parse(block)) if isinstance(node, ast.ImportFrom))
        found += [(node.module or "", alias.name) for node in nodes for alias in node.names]
    return found
