"""`trajectory_compressor` of Hermes Agent: `python -m hermes.compat.trajectory_compressor --input= --output= ...`."""

import sys
from collections.abc import Sequence

from hermes.compat.old_options import as_words, parse_old_options

_OPTIONS: dict[str, type] = {
    "input": str,
    "output": str,
    "config": str,
    "target_max_tokens": int,
    "tokenizer": str,
    "sample_percent": float,
    "seed": int,
    "dry_run": bool,
}
_USAGE = """\
usage: python -m hermes.compat.trajectory_compressor --input=FILE_OR_FOLDER [OPTION...]

The trajectory_compressor of Hermes Agent, by its own options. `hermes trajectories compress --help` explains each."""


def main(words: Sequence[str] | None = None) -> int:
    """Compress what the old options name; the exit code."""
    from hermes.surfaces.cli.main import main as hermes

    options = parse_old_options(sys.argv[1:] if words is None else words, _OPTIONS, _USAGE)
    if not options.get("input"):
        sys.stderr.write("error: --input is needed\n")
        return 2
    return hermes(["trajectories", "compress", str(options.pop("input")), *as_words(options)])


if __name__ == "__main__":
    sys.exit(main())
