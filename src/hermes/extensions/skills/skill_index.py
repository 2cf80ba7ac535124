"""The list of skills in the system prompt, within its budget however many there are. Pure."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from hermes.extensions.skills.skill_file import SkillHead

MAX_TOKENS = 1_000
SHOWN_CHARS = 60  # of a description
# Names with hyphens in them take more tokens than prose does; other scripts take one for a character.
_CHARS_PER_TOKEN = 3
_BEGIN = """Skills are ways of working that the user keeps. Before a task that one of them is for, load it with \
skill_view(name) and follow it.
<available_skills>"""
_BEGIN_MANY = """Skills are ways of working that the user keeps, too many to list here. Before a task, look for one \
with skills_list(query="the words of the task"), load it with skill_view(name) and follow it.
<available_skills>"""
_END = "</available_skills>"


def about_tokens(text: str) -> int:
    """About how many tokens a text takes, rather too many than too few."""
    wide = sum(1 for char in text if not char.isascii()) if not text.isascii() else 0
    return wide + -(-(len(text) - wide) // _CHARS_PER_TOKEN)


def skill_index(
    heads: Sequence[SkillHead], categories: Mapping[str, str], uses: Mapping[str, int], most: int = MAX_TOKENS
) -> str:
    """What the prompt says of these skills, in the fullest form that fits into `most` tokens; empty without any.

    Names and descriptions by category; else names alone; else how many there are in each category, with the most used
    names, and how to search.
    """
    if not heads:
        return ""
    groups: dict[str, list[SkillHead]] = defaultdict(list)
    for head in sorted(heads, key=lambda head: head.name):
        groups[head.category or head.name].append(head)
    for text in (_with_descriptions(groups, categories), _with_names(groups)):
        if about_tokens(text) <= most:
            return text
    return _with_counts(groups, uses, most)


def _with_descriptions(groups: Mapping[str, Sequence[SkillHead]], categories: Mapping[str, str]) -> str:
    lines = [_BEGIN]
    for category, heads in sorted(groups.items()):
        lines.append(f"  {category}: {_cut(categories.get(category, ''))}".rstrip())
        lines += [f"    - {head.name}: {_cut(head.description)}".rstrip(": ") for head in heads]
    return "\n".join([*lines, _END])


def _with_names(groups: Mapping[str, Sequence[SkillHead]]) -> str:
    lines = [_BEGIN]
    alone = [category for category, heads in sorted(groups.items()) if [head.name for head in heads] == [category]]
    for category, heads in sorted(groups.items()):
        if category not in alone:
            lines.append(f"  {category}: {', '.join(head.name for head in heads)}")
    if alone:
        lines.append(f"  {', '.join(alone)}")
    return "\n".join([*lines, _END])


def _with_counts(groups: Mapping[str, Sequence[SkillHead]], uses: Mapping[str, int], most: int) -> str:
    """One line for each category while there is room, the fullest first; then names where room is left."""
    loose = [heads[0] for category, heads in groups.items() if [head.name for head in heads] == [category]]
    folders = {category: heads for category, heads in groups.items() if [head.name for head in heads] != [category]}
    if loose:
        folders["(no category)"] = loose
    used = {category: sum(uses.get(head.name, 0) for head in heads) for category, heads in folders.items()}
    order = sorted(folders, key=lambda category: (-used[category], -len(folders[category]), category))
    shown: dict[str, list[str]] = {}
    left = most - about_tokens(_BEGIN_MANY) - about_tokens(_END) - 20  # the last line tells what was left out
    for category in order:
        cost = about_tokens(f"  {category}: 10000 skills\n") + 1
        if cost > left:
            break
        shown[category] = []
        left -= cost
    _add_names(shown, folders, uses, left)
    lines = [_line(category, len(folders[category]), shown[category]) for category in sorted(shown)]
    if more := len(folders) - len(shown):
        lines.append(f"  and {more} more categories")
    return "\n".join([_BEGIN_MANY, *lines, _END])


def _add_names(
    shown: Mapping[str, list[str]], folders: Mapping[str, Sequence[SkillHead]], uses: Mapping[str, int], left: int
) -> None:
    """The most used names of all these categories, each in its line, until the room is gone."""
    heads = [(uses.get(head.name, 0), category, head.name) for category in shown for head in folders[category]]
    for count, category, name in sorted(heads, key=lambda one: (-one[0], len(shown[one[1]]), one[2])):
        cost = about_tokens(f", {name}") + 2
        if len(shown[category]) >= 5 and not count:
            continue
        if cost > left:
            break
        shown[category].append(name)
        left -= cost


def _line(category: str, count: int, names: Sequence[str]) -> str:
    total = f"  {category}: {count} skill{'s' if count != 1 else ''}"
    if not names:
        return total
    return f"{total}: {', '.join(names)}" if len(names) == count else f"{total}, among them {', '.join(names)}"


def _cut(text: str) -> str:
    return text if len(text) <= SHOWN_CHARS else f"{text[: SHOWN_CHARS - 3]}..."
