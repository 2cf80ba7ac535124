"""`hermes`: the entry point. The version is told before anything else is imported."""

import sys
from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line; the exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        if words in (["--version"], ["-V"]) and sys.stdout is not None:
            return _tell_version()
        if words[:1] == ["acp"]:  # editors wait for it; its own options are all it needs
            from importlib import import_module

            code: int = import_module("hermes.surfaces.acp.main").main(words[1:])
            return code
        is_chat = not words or words[0] == "chat" or words[0].startswith("-")  # as `hermes --resume`
        return _run_chat(words) if is_chat else _run(words)
    except KeyboardInterrupt:  # while the commands are loaded; from then on they see to it themselves
        sys.stderr.write("Stopped.\n")
        return 130


def _tell_version() -> int:
    from hermes import __version__

    try:
        sys.stdout.write(f"hermes {__version__}\n")
        sys.stdout.flush()
    except OSError as error:
        from hermes.surfaces.cli.output import Output  # only when something is wrong
        from hermes.surfaces.cli.start import give_up

        return give_up(Output(sys.stdout, sys.stderr, {}), error)
    return 0


def _run_chat(words: list[str]) -> int:
    from hermes.surfaces.cli import gc_at_start  # so that the version costs nothing

    gc_at_start.begin()
    loaded = None
    try:
        if any(word.startswith(("-q", "--query")) for word in words):
            from hermes.models.http.preload import preload

            loaded = preload()
        return _run(words)
    finally:
        gc_at_start.end()
        if loaded is not None:
            loaded()


def _run(words: list[str]) -> int:
    from hermes.surfaces.cli.start import run  # see above

    return run(words)


if __name__ == "__main__":
    sys.exit(main())
