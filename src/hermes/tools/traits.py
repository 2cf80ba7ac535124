"""What a tool declares about itself beyond the contract: what a call touches, what it needs, how it may run."""

import os
import shutil
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import Any, ClassVar, Literal, TypeAlias

from msgspec import Struct

from hermes.config import paths
from hermes.config.dotenv import read_env
from hermes.seams import Effects, ToolContext

_MAX_PATH = 4096
Origin: TypeAlias = Literal["builtin", "home", "project", "plugin", "mcp", "code"]


def conflict(one: Effects, other: Effects) -> bool:
    """Whether the order of two calls could be seen. Two reads never conflict."""
    if one.barrier or other.barrier:
        return True
    return (
        _any_overlap(one.writes, other.writes)
        or _any_overlap(one.writes, other.reads)
        or _any_overlap(one.reads, other.writes)
    )


BARRIER = Effects(barrier=True)
NO_EFFECTS = Effects()

Refine: TypeAlias = Callable[[dict[str, Any], frozenset[str]], "dict[str, Any] | None"]
EffectsOf: TypeAlias = Callable[[Mapping[str, Any], ToolContext], Effects]


def touches_nothing(_args: Mapping[str, Any], _ctx: ToolContext) -> Effects:
    """For tools whose calls never meet: a web search, a clock. May run beside anything but a barrier."""
    return NO_EFFECTS


def reads_file(path: str, ctx: ToolContext) -> Effects:
    """A call that reads the file or tree at `path`."""
    return Effects(reads=frozenset({file_resource(path, ctx)}))


def writes_file(path: str, ctx: ToolContext) -> Effects:
    """A call that writes the file or tree at `path`."""
    if ctx.environment.kind != "local":
        # Links on another machine cannot be followed from here, so two names may be one file.
        return Effects(writes=frozenset({"file:/"}))
    return Effects(writes=frozenset({file_resource(path, ctx)}))


def file_resource(path: str, ctx: ToolContext) -> str:
    """The resource of a path as the call's environment sees it: absolute, and with links followed where they can be."""
    full = os.path.join(ctx.environment.cwd, os.path.expanduser(path))  # noqa: PTH111, PTH118 - text of an environment
    if len(full) > _MAX_PATH:
        return "file:/"  # no file has such a name; to look for its links, part by part, would take minutes
    if ctx.environment.kind == "local":
        return "file:" + os.path.normcase(os.path.realpath(full))
    return "file:" + os.path.normpath(full)


def overlap(one: str, other: str) -> bool:
    """Whether one resource is the other, or lies in it."""
    kind, _, path = one.partition(":")
    other_kind, _, other_path = other.partition(":")
    if kind != other_kind:
        return False
    parts = [part for part in path.split("/") if part]
    other_parts = [part for part in other_path.split("/") if part]
    shared = min(len(parts), len(other_parts))
    return parts[:shared] == other_parts[:shared]


def _any_overlap(ones: frozenset[str], others: frozenset[str]) -> bool:
    return any(overlap(one, other) for one in ones for other in others)


class Needs(Struct, frozen=True):
    """Availability as data: every `env` variable set, every binary found, every module importable.

    Of `any_env` and `any_binary` one is enough. Nothing is imported or started to find out.
    """

    env: tuple[str, ...] = ()
    any_env: tuple[str, ...] = ()
    binaries: tuple[str, ...] = ()
    any_binary: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()

    is_quick: ClassVar[bool] = True  # as a check

    def missing(self) -> str:
        """Why the tool is not available, in one clause; empty when it is."""
        for name in self.env:
            if not _is_set(name):
                return f"{name} is not set"
        if self.any_env and not any(_is_set(name) for name in self.any_env):
            return f"none of {', '.join(self.any_env)} is set"
        for name in self.binaries:
            if shutil.which(name) is None:
                return f"the program {name!r} is not on PATH"
        if self.any_binary and not any(shutil.which(name) for name in self.any_binary):
            return f"none of the programs {', '.join(self.any_binary)} is on PATH"
        for name in self.modules:
            if not _importable(name):
                return f"the Python package {name!r} is not installed"
        return ""

    def __call__(self) -> bool:
        """Usable as a `check_fn`."""
        return not self.missing()


def _is_set(variable: str) -> bool:
    """In the environment or in .env, where a tool file that asks for it can read it."""
    return bool(os.environ.get(variable) or read_env(paths.env_file(paths.hermes_home())).get(variable))


def _importable(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # the parent of a dotted name is missing
        return False


class Traits(Struct, frozen=True, kw_only=True):
    """How a tool may run. The default is what is known of a foreign tool: nothing.

    Args:
        effects: what one call reads and writes, from its arguments; None means unknown, so every call is a barrier.
        needs: availability as data; becomes the `check_fn` when none is given.
        interactive: talks with a person, so it runs alone and no time limit counts.
        agent_loop: needs a live turn; outside an agent such a call is refused.
        read_only: the same call twice is no progress.
        edits: changes files, so the edit guard is asked first.
        provenance: where the content comes from when that is outside ("web", "picture", "mcp"); it is fenced as data.
        timeout_s: the limit of one call; None leaves it to the tool and to the turn's deadline.
        refine: the schema once it is known which tools are offered beside this one; None leaves the tool out. For a
            built-in, a function of a light module: it is imported wherever definitions are made.
        spill: False keeps a large result whole, for tools that page by themselves.
        guidance: a sentence in the system prompt of sessions that are offered the tool.
    """

    effects: EffectsOf | None = None
    needs: Needs | None = None
    interactive: bool = False
    agent_loop: bool = False
    read_only: bool = False
    edits: bool = False
    provenance: str = ""
    timeout_s: float | None = 300.0
    spill: bool = True
    guidance: str = ""
    refine: Refine | None = None


UNKNOWN = Traits()
