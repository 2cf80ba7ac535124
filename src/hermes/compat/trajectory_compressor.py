"""`trajectory_compressor` of Hermes Agent: `python -m hermes.compat.trajectory_compressor --input= --output= ...`."""

import sys
from collections.abc import Sequence

from hermes.compat.old_options import parse_old_options

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


def main(words: Sequence[str] | None = None) -> int:
    """Compress what the old options name; the exit code."""
    from hermes.surfaces.cli.main import main as hermes

    options = parse_old_options(sys.argv[1:] if words is None else words, _OPTIONS)
    if "input" not in options:
        sys.stderr.write("error: --input is needed\n")
        return 2
    told = ["trajectories", "compress", str(options.pop("input"))]
    for name, value in options.items():
        option = f"--{name.replace('_', '-')}"
        if value is True:
            told.append(option)
        elif value is not False:
            told.append(f"{option}={value}")
    return hermes(told)


if __name__ == "__main__":
    sys.exit(main())
