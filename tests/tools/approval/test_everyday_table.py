"""The table of everyday commands in docs/security.md says what the gate does."""

import re
from dataclasses import replace
from pathlib import Path

from hermes.confinement.policy import LEVELS, Level
from tests.tools.approval.test_border import room

PAGE = Path(__file__).parents[3] / "docs" / "security.md"
ROW = re.compile(r"\| `(.+)` \| ([a-z ]+) \| ([a-z ]+) \| ([a-z ]+) \|")


async def outcome(command: str, level: Level) -> str:
    inside = room(level, "once", "once")
    sight = replace(inside.gate.sight, pushes_home=lambda remote: remote in ("", "origin"))
    inside.gate = replace(inside.gate, sight=sight)
    decision = await inside.run(command)
    if decision.rule == "hardline":
        return "never runs"
    return "asked" if inside.asked else "held" if decision.rule == "border" else "no"


async def test_the_table_says_what_the_gate_does() -> None:
    rows = ROW.findall(PAGE.read_text(encoding="utf-8"))
    told = {row[0].replace("\\|", "|"): list(row[1:]) for row in rows}
    assert len(told) >= 40
    found = {command: [await outcome(command, level) for level in LEVELS] for command in told}
    assert told == found
