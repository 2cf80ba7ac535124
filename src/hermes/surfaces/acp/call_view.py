"""How a tool call looks in an editor: kind, title, places, words and diffs. Pure; live and in a replay the same."""

import json
import os.path
from collections.abc import Mapping
from typing import Any

from hermes.surfaces.acp.protocol import (
    CallContent,
    CallMoved,
    CallTold,
    Location,
    PlanEntry,
    PlanTold,
    TextBlock,
    TextContent,
    ToolKind,
)
from hermes.types import CallFinished, CallStarted, JsonObject, text_of

MOST_TITLE = 120
MOST_TEXT = 100_000
_KINDS: dict[str, ToolKind] = {
    **dict.fromkeys(("read_file", "skill_view", "skills_list", "vision_analyze", "browser_snapshot"), "read"),
    **dict.fromkeys(("search_files", "session_search"), "search"),
    **dict.fromkeys(("terminal", "process", "execute_code", "delegate_task"), "execute"),
    **dict.fromkeys(("write_file", "patch", "skill_manage"), "edit"),
    **dict.fromkeys(("web_search", "web_extract", "browser_navigate"), "fetch"),
}
_SPOKEN = ("output", "content", "text", "diff", "message", "result", "summary")  # keys of results that people read


def kind_of_tool(name: str) -> ToolKind:
    if name in _KINDS:
        return _KINDS[name]
    return "execute" if name.startswith("browser_") else "other"


def title_of_call(name: str, args: Mapping[str, Any]) -> str:
    """A short verb and its subject."""
    words = _title(name, args)
    line = " ".join(words.split())
    return line if len(line) <= MOST_TITLE else f"{line[: MOST_TITLE - 1]}…"


def _title(name: str, args: Mapping[str, Any]) -> str:
    path = str(args.get("path") or "")
    match name:
        case "read_file":
            return f"read: {path}"
        case "write_file":
            return f"write: {path}"
        case "patch":
            return f"patch ({args.get('mode') or 'replace'}): {path or 'files'}"
        case "terminal":
            return f"terminal: {args.get('command') or ''}"
        case "search_files":
            return f"search: {args.get('pattern') or ''}"
        case "execute_code":
            first = next((line for line in str(args.get("code") or "").splitlines() if line.strip()), "")
            return f"python: {first}"
        case "todo":
            todos = args.get("todos")
            return f"todo ({len(todos)} items)" if isinstance(todos, list) else "todo"
        case "web_search":
            return f"web search: {args.get('query') or ''}"
        case "delegate_task":
            tasks = args.get("tasks")
            return f"delegate: {len(tasks)} tasks" if isinstance(tasks, list) else f"delegate: {args.get('goal') or ''}"
        case _:
            first = next((str(value) for value in args.values() if isinstance(value, str) and value), "")
            return f"{name}: {first}" if first else name


def locations_of(name: str, args: Mapping[str, Any], cwd: str) -> tuple[Location, ...]:
    """Absolute paths of what a file tool touches."""
    path = args.get("path")
    if name not in ("read_file", "write_file", "patch", "search_files") or not isinstance(path, str) or not path:
        return ()
    whole = os.path.normpath(os.path.join(cwd, os.path.expanduser(path)))  # noqa: PTH111, PTH118 - words, not files
    line = args.get("offset") if name == "read_file" else None
    return (Location(whole, line if isinstance(line, int) and line > 0 else None),)


def begun(event: CallStarted, cwd: str) -> CallTold:
    """A call that starts."""
    call, args = event.call, event.args
    return CallTold(
        tool_call_id=call.id,
        title=title_of_call(call.name, args),
        kind=kind_of_tool(call.name),
        status="in_progress",
        locations=locations_of(call.name, args, cwd),
        content=_asked_words(call.name, args),
        raw_input=dict(args),
    )


def ended(event: CallFinished, edits: tuple[CallContent, ...] = ()) -> CallMoved:
    """A call that has its result; `edits` are the files that it changed."""
    call, result = event.call, event.result
    text = text_of(result.content)
    if text.startswith("<"):
        from hermes.tools.results.tool_result import unfenced  # for what came from outside

        text = unfenced(text)
    parsed = _parsed(text)
    has_failed = result.status != "ok" or _is_error(parsed)
    shown = text_content(_readable(text, parsed))
    return CallMoved(
        tool_call_id=call.id,
        kind=kind_of_tool(call.name),
        status="failed" if has_failed else "completed",
        content=edits if edits and not has_failed else shown,
        raw_output=parsed if parsed is not None else None,
    )


def plan_of(tasks: tuple[JsonObject, ...]) -> PlanTold:
    """The task list, whole."""
    return PlanTold(tuple(_entry(task) for task in tasks))


def text_content(text: str) -> tuple[CallContent, ...]:
    cut = text if len(text) <= MOST_TEXT else f"{text[:MOST_TEXT]}\n[cut here]"
    return (TextContent(TextBlock(cut)),) if cut else ()


def _entry(task: JsonObject) -> PlanEntry:
    status, words = str(task.get("status") or "pending"), str(task.get("content") or "")
    if status == "cancelled":
        return PlanEntry(f"[cancelled] {words}", "completed", "medium")
    return PlanEntry(words, status if status in ("in_progress", "completed") else "pending", "medium")  # type: ignore[arg-type]  # a tuple does not narrow


def _asked_words(name: str, args: Mapping[str, Any]) -> tuple[CallContent, ...]:
    if name == "terminal":
        return text_content(f"$ {args.get('command') or ''}")
    if name == "execute_code":
        return text_content(str(args.get("code") or ""))
    return ()


def _parsed(text: str) -> JsonObject | None:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _is_error(parsed: JsonObject | None) -> bool:
    if parsed is None:
        return False
    return bool(parsed.get("error")) or parsed.get("exit_code") not in (None, 0) or parsed.get("success") is False


def _readable(text: str, parsed: JsonObject | None) -> str:
    """What a person reads of a result: its words, not its JSON."""
    if parsed is None:
        return text
    said = [str(parsed[key]) for key in _SPOKEN if isinstance(parsed.get(key), str) and parsed[key]]
    if isinstance(error := parsed.get("error"), str) and error:
        said.append(error)
    if parsed.get("exit_code") not in (None, 0):
        said.append(f"exit code {parsed['exit_code']}")
    if isinstance(rows := parsed.get("results"), list):
        said += [
            f"{row.get('status')}: {row['summary']}" for row in rows if isinstance(row, dict) and row.get("summary")
        ]
    if said:
        return "\n".join(said)
    return "\n".join(f"{key}: {_flat(value)}" for key, value in parsed.items())


def _flat(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
