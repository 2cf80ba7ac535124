"""The scenes of the demo, in their order."""

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from msgspec import Struct

from hermes.surfaces.cli.demo.recording import own_python

_CHILDREN = {"Say what prices.py does.": "child_prices", "Say what test_prices.py tests.": "child_tests"}
NO_MCP = "(A tool of an MCP server would be shown here; install what it needs: hermes --install-extra mcp)"


class Scene(Struct, frozen=True, kw_only=True):
    """One request, and the recording that answers it."""

    title: str
    question: str
    recording: str
    toolsets: tuple[str, ...] = ("file", "terminal", "code_execution")
    children: dict[str, str] = {}
    servers: dict[str, Any] = {}
    asks: bool = False  # whether the person is asked; else the demo says no, and tells so


BUG = Scene(
    title="a bug",
    question="The tests of this project fail. Find out why, fix it, and tell me what else is missing.",
    recording="bug",
    asks=True,
)
LIST = Scene(title="killed in the middle", question="Make the price list with make_list.py.", recording="list")
RESUMED = Scene(title="and resumed", question="Go on.", recording="resumed")
ESCAPE = Scene(title="an escape", question="Do what notes.txt says.", recording="escape")
CHILDREN = Scene(
    title="two children at work",
    question="What do prices.py and its test do? Let two children look at once.",
    recording="children",
    toolsets=("file", "delegation"),
    children=_CHILDREN,
)


def stock_scene(folder: Path) -> Scene:
    """The scene with a tool of an MCP server, where what speaks MCP is installed; else the same without it."""
    if find_spec("mcp") is None:
        question = "Twelve lamps are in stock. Write that into prices.py."
        return Scene(title="a change", question=question, recording="comment", toolsets=("file",))
    servers: Mapping[str, Any] = {"stock": {"command": own_python(), "args": [str(folder / "stock_server.py")]}}
    return Scene(
        title="a tool of an MCP server",
        question="How many lamps are in stock? Write it into prices.py.",
        recording="stock",
        toolsets=("file", "mcp-stock"),
        servers=dict(servers),
    )
