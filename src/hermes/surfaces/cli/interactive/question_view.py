"""An approval as it stands on the screen: what would run or be written first, then what that does and where."""

from hermes.host.events import TERMINAL
from hermes.surfaces.cli.interactive.markup import Painter, hanging
from hermes.surfaces.cli.interactive.status import short_path
from hermes.surfaces.cli.output import width_of
from hermes.tools.approval.visible_text import visible
from hermes.types import Question

INDENT = "    "
MOST_LINES = 200
ANSWERS = {
    "once": "allowed once",
    "task": "allowed for this task",
    "session": "allowed for this session",
    "always": "always allowed; /approvals takes it back",
    "deny": "you said no",
}


def question_rows(question: Question, painter: Painter) -> str:
    """The question, in lines that are there for good."""
    facts = question.details
    cwd = str(facts.get("cwd") or "")
    diff, command = str(facts.get("diff") or ""), str(facts.get("for_command") or facts.get("command") or "")
    lines: list[str] = []
    if facts.get("asked_by"):
        lines.append(painter.line(f"Asked by the child {visible(str(facts['asked_by']))}", "bold"))
    if diff:
        lines += [painter.style(f"May this be written to {visible(short_path(command))}?", "bold") + "\n"]
        lines += [painter.diff(diff)]
    else:
        where = f" in {short_path(cwd)}" if cwd else ""
        lines += [painter.style(f"May this run ({facts.get('tool')}{where})?", "bold") + "\n"]
        lines += _to_the_letter(command, painter)
    why = [str(facts["why"])] if facts.get("why") else []
    for effect in [*why, *(facts.get("effects") or [facts.get("description", "")])]:
        if effect and not (is_plain_edit(question) and effect == facts.get("description")):
            lines += _bullet(visible(str(effect)), painter)
    return "".join(lines)


def is_plain_edit(question: Question) -> bool:
    """Whether it is asked for no other reason than that the session's mode asks about edits."""
    named = f"[{question.details.get('asked_by')}] "
    return str(question.details.get("description") or "").removeprefix(named) == "an edit"


def _bullet(text: str, painter: Painter) -> list[str]:
    """What it would do, whole: whoever decides reads all of it."""
    return [painter.line(row, "yellow") for row in hanging("  • ", " ".join(text.split()), painter.width - 1)]


def answered_row(question: Question, answer: str, by: str, painter: Painter) -> str:
    """What was answered, in the place of the question."""
    if by == "deadline":
        told = "nobody answered in time: not allowed"
    elif by == "interrupt":
        told = "stopped: not allowed"
    else:
        word = next((full for full in ANSWERS if answer and full.startswith(answer.lower())), "deny")
        told = ANSWERS["once" if answer.lower() in ("y", "yes") else word]
        if word == "deny" and by != TERMINAL:
            told = "not allowed"
        if word in ("task", "session", "always") and question.text and not is_plain_edit(question):
            told += f": {visible(question.text)}"
    is_yes = told.startswith(("allowed", "always"))
    rows = hanging(f"  {'✓' if is_yes else '✗'} ", " ".join(told.split()), painter.width - 1)
    return "".join(painter.line(row, "green" if is_yes else "red") for row in rows)


def _to_the_letter(command: str, painter: Painter) -> list[str]:
    """Every character of the command, each row with the same indent; nothing is broken away at a space."""
    rows: list[str] = []
    room = max(8, painter.width - len(INDENT) - 1)
    for line in visible(command).split("\n"):
        rest = line
        while True:
            end = min(len(rest), room)
            while end > 1 and width_of(rest[:end]) > room:
                end -= 1
            rows.append(f"{INDENT}{rest[:end]}\n")
            rest = rest[end:]
            if not rest:
                break
    if len(rows) > MOST_LINES:
        rows[MOST_LINES:] = [f"{INDENT}… and {len(rows) - MOST_LINES} more lines\n"]
    return rows
