"""Slash commands: what there are, what one answers, and how a line completes."""

from pathlib import Path

from msgspec import Struct, field, to_builtins

from hermes.config.sections.top import Section as Top
from hermes.errors import HermesError
from hermes.host.command import (
    COMMANDS,
    CommandResult,
    SurfaceFacts,
    SurfaceKind,
    available,
    find,
    quick_commands,
    skill_names,
)
from hermes.host.path_completion import paths_below
from hermes.host.wire import frames
from hermes.host.wire.frames import WireError
from hermes.surfaces.serve.method import Method, MethodCall, NoParams, OfSession
from hermes.types import JsonObject

CATEGORY = "Commands"


class SurfaceWords(Struct, frozen=True, kw_only=True):
    """What a client says about its screen."""

    kind: SurfaceKind = "program"
    shows_reasoning: bool = False
    keys: tuple[tuple[str, str], ...] = ()


class Execute(OfSession, frozen=True, kw_only=True):
    """A slash command, with or without its slash. `whole`: its whole result, not only its words."""

    command: str = ""
    whole: bool = False
    surface: SurfaceWords = field(default_factory=SurfaceWords)


class Dispatch(OfSession, frozen=True, kw_only=True):
    name: str = ""
    arg: str = ""


class Named(Struct, frozen=True, kw_only=True):
    name: str = ""


class Typed(OfSession, frozen=True, kw_only=True):
    text: str = ""


class PathWord(OfSession, frozen=True, kw_only=True):
    word: str = ""


async def execute(call: MethodCall, params: Execute) -> JsonObject:
    result = await _run(call, params.session_id, params.command, params.surface)
    if params.whole:
        told: JsonObject = to_builtins(result)
        return told
    return {"output": _words(result), "data": result.data}


async def dispatch(call: MethodCall, params: Dispatch) -> JsonObject:
    name = params.name.removeprefix("/")
    result = await _run(call, params.session_id, f"{name} {params.arg}".strip(), SurfaceWords())
    target = result.goes_to.session_id if result.goes_to is not None else None
    return {"type": "exec", "name": name, "output": _words(result), "notice": result.note, "target": target}


async def _run(call: MethodCall, session_id: str, command: str, surface: SurfaceWords) -> CommandResult:
    live = await call.live(session_id)
    typed = command.strip().removeprefix("/")
    if not typed:
        raise WireError(frames.EMPTY_INPUT, "no command is named")
    facts = SurfaceFacts(kind=surface.kind, shows_reasoning=surface.shows_reasoning, keys=surface.keys, can_detach=True)
    try:
        return await live.command(typed, facts)
    finally:
        call.server.refresh(live)


async def catalog(call: MethodCall, _params: NoParams) -> JsonObject:
    names = available("program")
    pairs = [[f"/{name}", COMMANDS.summary(name)] for name in names]
    canon = {f"/{name}": f"/{name}" for name in names}
    canon |= {f"/{alias}": f"/{name}" for name in names for alias in COMMANDS.load(name).aliases}
    own = call.server.settings.of(Top).quick_commands
    pairs += [[f"/{name}", one.command or one.target] for name, one in own.items() if name not in names]
    return {
        "pairs": pairs,
        "canon": canon,
        "categories": [{"name": CATEGORY, "pairs": pairs}],
        "sub": {},
        "skill_count": 0,
        "warning": "",
    }


async def resolved(_call: MethodCall, params: Named) -> JsonObject:
    try:
        name = find(params.name.strip().removeprefix("/"))
    except HermesError as error:
        raise WireError(frames.NO_COMMAND, str(error)) from error
    return {"canonical": f"/{name}", "description": COMMANDS.summary(name), "category": CATEGORY}


async def complete_slash(call: MethodCall, params: Typed) -> JsonObject:
    if not params.text.startswith("/"):
        return {"items": [], "replace_from": 0}
    name, blank, begun = params.text[1:].partition(" ")
    live = await call.live(params.session_id, to_change=False) if params.session_id else None
    if not blank:
        known = {each: COMMANDS.summary(each) for each in available("program")}
        if live is not None:
            known |= dict.fromkeys(await live.in_thread(lambda: tuple(skill_names(live))), "a skill")
            known |= {each: one.command or one.target for each, one in quick_commands(live).items()}
        items = [_item(each, f"/{each}", told) for each, told in sorted(known.items()) if each.startswith(name)]
        return {"items": items, "replace_from": 1}
    command = COMMANDS.load(name) if name in COMMANDS.names() else None
    if command is None or command.complete is None or live is None:
        return {"items": [], "replace_from": len(params.text)}
    complete = command.complete
    words = await live.in_thread(lambda: list(complete(live, begun)))
    return {"items": [_item(word, word, "") for word in words], "replace_from": len(params.text) - len(begun)}


async def complete_path(call: MethodCall, params: PathWord) -> JsonObject:
    """Relative words start at the session's folder."""
    live = await call.live(params.session_id, to_change=False) if params.session_id else None
    folder = live.cwd if live is not None else call.client.cwd or call.server.cwd
    found = await call.server.in_thread(lambda: list(paths_below(Path(folder), params.word)))
    head = params.word[: params.word.rfind("/") + 1]
    return {"items": [_item(f"{head}{name}", name, "folder" if name.endswith("/") else "") for name in found]}


def _item(text: str, display: str, meta: str) -> JsonObject:
    return {"text": text, "display": display, "meta": meta}


def _words(result: CommandResult) -> str:
    """All that a command has to say, as text."""
    parts = [result.text]
    for heading, rows in result.sections:
        parts.append("\n".join([heading, *(f"  {head}  {told}".rstrip() for head, told in rows)]))
    if result.form == "messages":
        parts.append("\n".join(f"{one['role']}: {one.get('content')}" for one in result.data["messages"]))
    return "\n".join(part for part in (*parts, result.screen.rstrip("\n"), result.note, result.offer) if part)


METHODS: dict[str, Method] = {
    "slash.exec": Method(Execute, execute),
    "command.dispatch": Method(Dispatch, dispatch),
    "commands.catalog": Method(NoParams, catalog),
    "command.resolve": Method(Named, resolved),
    "complete.slash": Method(Typed, complete_slash),
    "complete.path": Method(PathWord, complete_path),
}
