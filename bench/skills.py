"""What 500 skills cost: a start with its first request, against a home without any; the index, and one search.

    PYTHONPATH=src:. python bench/skills.py [--rounds 9]

Both homes are started in turns, in one run, against the scripted server on loopback; what counts is the ratio of the
medians. No figure here is a test.
"""

import argparse
import tempfile
import time
from pathlib import Path

from bench.start_ratio import compare_starts
from hermes.config.load import load_settings
from hermes.extensions.skills.skill_book import SkillBook
from hermes.extensions.skills.skill_desk import SkillDesk
from hermes.extensions.skills.skill_index import about_tokens, skill_index
from hermes.runtime.setup.skill_setup import skill_services

SKILLS = 500
WORDS = (
    *("deploy", "rotate", "parse", "merge", "index", "render"),
    *("archive", "verify", "publish", "restore", "migrate", "measure"),
)


def fill(home: Path, count: int) -> None:
    """So many skills in a home, in 25 categories, with a page of words each."""
    for number in range(count):
        first, second = WORDS[number % len(WORDS)], WORDS[(number * 7 + 3) % len(WORDS)]
        folder = home / "skills" / f"area-{number % 25}" / f"{first}-{second}-{number}"
        folder.mkdir(parents=True)
        body = f"Step {number}: {first} the thing, then {second} it, and check.\n" * 30
        head = f"name: {folder.name}\ndescription: {first.title()} and {second} item {number}."
        (folder / "SKILL.md").write_text(f"---\n{head}\n---\n\n{body}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as place:
        homes = {"none": Path(place, "none"), "500": Path(place, "many")}
        for home in homes.values():
            home.mkdir()
        fill(homes["500"], SKILLS)
        told = compare_starts(homes, rounds)
        print(told)
        settings = load_settings(homes["500"], environ={})
        book = SkillBook(settings)
        began = time.perf_counter()
        heads = book.usable()
        text = skill_index(heads, book.category_words(heads), {})
        print(
            f"index of {len(heads)}: {(time.perf_counter() - began) * 1000:.1f} ms, {about_tokens(text)} tokens at most"
        )
        desk = SkillDesk(book, skill_services(settings))
        began = time.perf_counter()
        desk.listed("archive and verify item 123")
        print(f"one search: {(time.perf_counter() - began) * 1000:.0f} ms")


if __name__ == "__main__":
    main()
