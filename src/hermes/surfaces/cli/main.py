"""`hermes`: the entry point. The version is told before anything else is imported."""

import sys
from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line; the exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    if words in (["--version"], ["-V"]) and sys.stdout is not None:
        from hermes import __version__  # noqa: PLC0415

        sys.stdout.write(f"hermes {__version__}\n")
        return 0
    if words and words[0] != "chat":
        return _run(words)
    from hermes.surfaces.cli import loading  # noqa: PLC0415 - so that the version costs nothing

    loading.begin()
    try:
        if any(word.startswith(("-q", "--query")) for word in words):
            from hermes.models.preload import preload  # noqa: PLC0415

            preload()
        return _run(words)
    finally:
        loading.end()


def _run(words: list[str]) -> int:
    from hermes.surfaces.cli.start import run  # noqa: PLC0415 - see above

    return run(words)


if __name__ == "__main__":
    sys.exit(main())
