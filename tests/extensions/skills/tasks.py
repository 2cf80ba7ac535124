"""A hundred tasks in people's words, each with the one skill that fits it, and skills that nobody asks for."""

from pathlib import Path

_FITTING = Path(__file__).parent / "tasks.txt"


def fitting() -> list[tuple[str, str, str, str]]:
    """Name, category, description and task of each."""
    rows = []
    for line in _FITTING.read_text(encoding="utf-8").splitlines()[1:]:
        skill, _, task = line.partition("||")
        name, category, description = (part.strip() for part in skill.split("|"))
        rows.append((name, category, description, task.strip()))
    return rows


_VERBS = [
    "Plan",
    "Write",
    "Check",
    "Build",
    "Review",
    "Sort",
    "Clean",
    "Explain",
    "Measure",
    "Compare",
    "Draft",
    "Trace",
    "Merge",
    "Watch",
    "Store",
    "Publish",
]
_THINGS = [
    "vendor",
    "shipment",
    "ledger",
    "warehouse",
    "pallet",
    "turbine",
    "valve",
    "boiler",
    "conveyor",
    "harbour",
    "crane",
    "quarry",
    "smelter",
    "kiln",
    "loom",
    "spindle",
    "orchard",
    "vineyard",
    "apiary",
    "hatchery",
    "sawmill",
    "foundry",
    "tannery",
    "brewery",
    "dairy",
    "bakery",
    "pharmacy",
    "clinic",
    "library",
    "archive",
    "museum",
]
_MATTERS = [
    "orders",
    "rota",
    "audit",
    "manual",
    "forecast",
    "layout",
    "tariff",
    "schedule",
    "register",
    "handbook",
    "roster",
    "permit",
    "checklist",
]


def others(count: int) -> list[tuple[str, str, str]]:
    """So many further skills: name, category and description."""
    found = []
    for number in range(count):
        verb, thing = _VERBS[number % len(_VERBS)], _THINGS[(number * 7) % len(_THINGS)]
        matter = _MATTERS[(number * 5 + number // 31) % len(_MATTERS)]
        name = f"{thing}-{matter}-{number}"
        found.append((name, f"branch-{number % 17}", f"{verb} the {matter} of a {thing}, number {number}"))
    return found
