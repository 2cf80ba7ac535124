"""What a run may spend in all. Counted after each answer; when it is used up, nothing more is asked."""

from typing import TYPE_CHECKING

from hermes.batch.run_spec import RunSpec
from hermes.config.settings import Settings
from hermes.models.providers.metadata import price_list
from hermes.seams import Sink
from hermes.state.batch_rows import RunSpending
from hermes.types import Event, ModelAnswered

if TYPE_CHECKING:
    from hermes.batch.opened_run import RunStop


class RunBudget:
    """The caps of a run. It may be passed by one answer of each sample that is under way, and by no more.

    `spent` is what the ledger has of the run: also what samples cost that were cut off, or began anew.
    """

    def __init__(self, spec: RunSpec, settings: Settings, spent: RunSpending, stop: "RunStop") -> None:
        self._spec = spec
        self._needs_price = spec.run_usd is not None or spec.sample_usd is not None
        self._stop = stop
        self._price = price_list(settings)
        self._spent_usd, self._spent_tokens = spent.cost_usd, spent.tokens
        self._check()

    def sink(self) -> Sink | None:
        """A listener for every agent of the run; None when nothing is capped."""
        return self if self._needs_price or self._spec.run_tokens is not None else None

    def emit(self, event: Event) -> None:
        if isinstance(event, ModelAnswered):
            cost, _ = self._price(event.provider, event.model, event.usage)
            if cost is None and self._needs_price and not self._stop.is_hard:
                self._stop.halt(
                    f"nobody knows what {event.model!r} costs, so no budget in dollars can be kept; "
                    "give one in tokens, or the model's prices (docs/costs.md)"
                )
            self._spent_usd += cost or 0.0
            self._spent_tokens += (event.usage.prompt_tokens or 0) + (event.usage.output_tokens or 0)
            self._check()

    def _check(self) -> None:
        if not self._stop.is_hard and (told := used_up(self._spec, self._spent_usd, self._spent_tokens)):
            self._stop.halt(told)


def used_up(spec: RunSpec, spent_usd: float, spent_tokens: int) -> str:
    """Which budget of the run is, in words; empty while there is some left."""
    if spec.run_usd is not None and spent_usd >= spec.run_usd:
        return f"the run's budget of ${spec.run_usd:g} is used up (${spent_usd:.4f})"
    if spec.run_tokens is not None and spent_tokens >= spec.run_tokens:
        return f"the run's budget of {spec.run_tokens:,} tokens is used up ({spent_tokens:,})"
    return ""
