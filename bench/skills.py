"""What 500 skills cost: a start with its first request, against a home without any; the index, and one search.

    PYTHONPATH=src python bench/skills.py [--rounds 9]

Both homes are started in turns, in one run, against the scripted server on loopback; what counts is the ratio of the
medians. No figure here is a test.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from hermes.config.load import load_settings
from hermes.extensions.skills.skill_book import SkillBook
from hermes.extensions.skills.skill_desk import SkillDesk
from hermes.extensions.skills.skill_index import about_tokens, skill_index
from hermes.runtime.setup.skill_setup import skill_services
from hermes.testing.replies import says
from hermes.testing.server import ServerThread

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


def start(home: Path, address: str) -> float:
    """Seconds from the start of the process to its end, with one question in between."""
    words = ["chat", "-q", "Hi", "--provider", "custom", "--model", "m", "--base-url", address]
    environ = {**os.environ, "HERMES_HOME": str(home), "HOME": str(home)}
    began = time.perf_counter()
    subprocess.run([sys.executable, "-m", "hermes", *words], env=environ, check=True, capture_output=True)
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as place:
        homes = {"none": Path(place, "none"), "500": Path(place, "many")}
        for home in homes.values():
            home.mkdir()
        fill(homes["500"], SKILLS)
        taken: dict[str, list[float]] = {name: [] for name in homes}
        with ServerThread([says("Hello.")] * (2 * (rounds + 2))) as server:
            for number in range(rounds + 2):
                for name in sorted(homes, reverse=bool(number % 2)):
                    seconds = start(homes[name], server.base_url)
                    if number >= 2:  # the first ones fill caches
                        taken[name].append(seconds)
        medians = {name: statistics.median(seconds) for name, seconds in taken.items()}
        ratio = medians["500"] / medians["none"]
        shown = ", ".join(f"{name} {seconds * 1000:.0f} ms" for name, seconds in medians.items())
        print(f"start and first request: {shown}, ratio {ratio:.3f}")
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
