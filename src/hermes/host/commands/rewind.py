"""Go back to an earlier message: the conversation, the files, or both; `back` takes that back."""

from typing import TYPE_CHECKING, cast

from hermes.context.checkpoints import CheckpointError
from hermes.errors import UserError
from hermes.host.command import CommandCall, CommandResult, SlashCommand, one_of
from hermes.host.session_text import age

if TYPE_CHECKING:
    from hermes.host.session_rewind import RewindPoint, Rewound, SessionRewind, What

WHAT = ("both", "conversation", "files")
SHOWN = 12


async def run(call: CommandCall) -> CommandResult:
    from hermes.host.session_rewind import SessionRewind  # brings the checkpoints

    rewind, words = SessionRewind(call.session), call.words.split()
    try:
        if words == ["back"]:
            return _done(await rewind.back(), "")
        points = await rewind.points()
        if not points:
            raise UserError("nothing was said in this session yet")
        if not words:
            return _listed(points)
        point = _chosen(points, words[0])
        if len(words) == 1:
            return await _previewed(rewind, point)
        if len(words) == 2 and words[1] in WHAT:
            return _done(await rewind.go(point, cast("What", words[1])), "/rewind back takes this back.")
    except CheckpointError as error:
        raise UserError(str(error)) from error
    raise UserError("say /rewind, /rewind N, /rewind N both|conversation|files, or /rewind back")


def _chosen(points: "list[RewindPoint]", word: str) -> "RewindPoint":
    if word.isdecimal() and 1 <= int(word) <= len(points):
        return points[int(word) - 1]
    raise UserError(f"there is no message {word!r}; /rewind lists them")


def _listed(points: "list[RewindPoint]") -> CommandResult:
    rows = []
    for point in points[:SHOWN]:
        words = " ".join(point.text.split())
        files = f"  [{len(point.files)} file{'' if len(point.files) == 1 else 's'} changed]" if point.files else ""
        rows.append((f"{point.number}  {age(point.at)}", f"{words[:200]}{files}"))
    choices = [{"label": f"{row[0]}  {row[1]}", "command": f"/rewind {number}"} for number, row in enumerate(rows, 1)]
    data = {
        "choices": choices,
        "points": [{"number": one.number, "text": one.text, "files": list(one.files)} for one in points],
    }
    return CommandResult(
        text="Go back to just before:",
        sections=(("", tuple(rows)),),
        note="/rewind N shows what that would do.",
        data=data,
    )


async def _previewed(rewind: "SessionRewind", point: "RewindPoint") -> CommandResult:
    """What going back would do, and what it cannot do, before anything is done."""
    plans = await rewind.plan(point)
    files = [path for plan in plans for path in plan.files]
    kept = [path for plan in plans for path in plan.kept]
    lost = [path for plan in plans for path in plan.lost]
    sections: list[tuple[str, tuple[tuple[str, str], ...]]] = [
        (f'Before "{" ".join(point.text.split())[:80]}"', (("conversation", "all from there on"),))
    ]
    for heading, paths in (
        ("files", files),
        ("left alone", [f"{path}: changed by you or another program since" for path in kept]),
        ("not kept", [f"{path}: too large, or no longer there" for path in lost]),
    ):
        if paths:
            shown = [*paths[:SHOWN], *([f"… and {len(paths) - SHOWN} more"] if len(paths) > SHOWN else [])]
            sections.append(("", tuple((heading if not place else "", path) for place, path in enumerate(shown))))
    return CommandResult(
        sections=tuple(sections),
        note="Enter does both; say conversation or files in place of both for one of them."
        if files
        else "No file was changed since. Enter takes back the conversation.",
        offer=f"/rewind {point.number} {'both' if files else 'conversation'}",
        data={"files": files, "kept": kept, "not_kept": lost},
    )


def _done(done: "Rewound", more: str) -> CommandResult:
    said = [f"{done.messages} messages" if done.messages else "", _count(len(done.files.restored))]
    lines = [f"Taken back: {', '.join(filter(None, said)) or 'nothing; all is as it was then'}."]
    lines += [f"  {path}" for path in done.files.restored[:SHOWN]]
    lines += [f"  left alone, changed by you or another program since: {path}" for path in done.files.kept]
    lines += [f"  not kept, so it stays: {path}" for path in done.files.lost]
    return CommandResult(
        text="\n".join(lines),
        form="lines",
        note=more,
        offer=done.text,
        data={"messages": done.messages, "restored": list(done.files.restored), "kept": list(done.files.kept)},
    )


def _count(files: int) -> str:
    return f"{files} file{'' if files == 1 else 's'}" if files else ""


COMMAND = SlashCommand(run=run, args="[N [both|conversation|files] | back]", when_busy=False, complete=one_of("back"))
