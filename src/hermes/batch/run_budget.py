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
        self._usd, self._tokens = spec.run_usd, spec.run_tokens
        self._needs_price = spec.run_usd is not None or spec.sample_usd is not None
        self._stop = stop
        self._price = price_list(settings)
        self._spent_usd, self._spent_tokens = spent.cost_usd, spent.tokens
        self._check()

    def sink(self) -> Sink | None:
        """A listener for every agent of the run; None when nothing is capped."""
        return self if self._needs_price or self._tokens is not None else None

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
        if self._stop.is_hard:
            return
        if self._usd is not None and self._spent_usd >= self._usd:
            self._stop.halt(f"the run's budget of ${self._usd:g} is used up (${self._spent_usd:.4f})")
        elif self._tokens is not None and self._spent_tokens >= self._tokens:
            self._stop.halt(f"the run's budget of {self._tokens:,} tokens is used up ({self._spent_tokens:,})")
