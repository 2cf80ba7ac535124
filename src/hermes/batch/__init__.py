"""Many prompts through the agent, each a sample with a row of its own: `hermes batch`, as a library.

    from hermes.batch import RunSpec, run_batch
    report = asyncio.run(run_batch(RunSpec(dataset="prompts.jsonl", run_name="first")))

`sample_toolsets_from_distribution(name)` draws the toolsets of one sample.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hermes.batch.distributions import (
        get_distribution,
        list_distributions,
        sample_toolsets_from_distribution,
        validate_distribution,
    )
    from hermes.batch.run import run_batch
    from hermes.batch.run_spec import RunReport, RunSpec

_HOMES = {
    "get_distribution": "distributions",
    "list_distributions": "distributions",
    "sample_toolsets_from_distribution": "distributions",
    "validate_distribution": "distributions",
    "run_batch": "run",
    "RunReport": "run_spec",
    "RunSpec": "run_spec",
}
__all__ = [
    "RunReport",
    "RunSpec",
    "get_distribution",
    "list_distributions",
    "run_batch",
    "sample_toolsets_from_distribution",
    "validate_distribution",
]


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
