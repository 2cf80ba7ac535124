"""`batch_runner` of Hermes Agent, over `hermes batch`: `python -m hermes.compat.batch_runner --dataset_file=F ...`."""

import sys
from collections.abc import Sequence
from typing import Any

from hermes.compat.old_options import as_words, parse_old_options

_OPTIONS: dict[str, type] = {
    "dataset_file": str,
    "batch_size": int,
    "run_name": str,
    "distribution": str,
    "model": str,
    "api_key": str,
    "base_url": str,
    "max_turns": int,
    "num_workers": int,
    "resume": bool,
    "verbose": bool,
    "list_distributions": bool,
    "ephemeral_system_prompt": str,
    "log_prefix_chars": int,
    "providers_allowed": str,
    "providers_ignored": str,
    "providers_order": str,
    "provider_sort": str,
    "max_tokens": int,
    "reasoning_effort": str,
    "reasoning_disabled": bool,
    "prefill_messages_file": str,
    "max_samples": int,
}
_USAGE = """\
usage: python -m hermes.compat.batch_runner --dataset_file=FILE --batch_size=N --run_name=NAME [OPTION...]

The batch_runner of Hermes Agent, by its own options. `hermes batch run --help` explains each and has more."""
_OF_LOG = ("verbose", "log_prefix_chars")  # of lines that this program does not print


class BatchRunner:
    """A run with the keywords of the old class; `run(resume=False)` blocks until it has ended."""

    def __init__(self, dataset_file: str, batch_size: int, run_name: str, **keywords: Any) -> None:
        unknown = sorted(set(keywords) - set(_OPTIONS))
        if unknown:
            raise TypeError(f"BatchRunner has no keyword {unknown[0]!r}")
        self._keywords = {"dataset_file": dataset_file, "batch_size": batch_size, "run_name": run_name, **keywords}

    def run(self, resume: bool = False) -> None:
        """Run it; `SystemExit` with a code when it has not come to its end."""
        if code := run({**self._keywords, "resume": resume}):
            raise SystemExit(code)


def run(options: dict[str, Any]) -> int:
    """Run what the old options ask for; the exit code."""
    from hermes.surfaces.cli.main import main as hermes

    options = {name: value for name, value in options.items() if value is not None}
    if options.pop("list_distributions", False):
        return hermes(["batch", "distributions"])
    for name in ("dataset_file", "batch_size", "run_name"):
        if options.get(name, "") == "":
            sys.stderr.write(f"error: --{name} is needed\n")
            return 2
    for name in _OF_LOG:
        if options.pop(name, None):
            sys.stderr.write(f"note: --{name} has no effect here; see: hermes batch stats\n")
    return hermes(["batch", "run", str(options.pop("dataset_file")), *as_words(options)])


def main(words: Sequence[str] | None = None) -> int:
    """`python -m hermes.compat.batch_runner`."""
    return run(parse_old_options(sys.argv[1:] if words is None else words, _OPTIONS, _USAGE))


if __name__ == "__main__":
    sys.exit(main())
