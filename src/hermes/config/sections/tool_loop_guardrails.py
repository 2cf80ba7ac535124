"""When a model that goes in circles is warned, and when it is stopped."""

from typing import Annotated

from hermes.config.section import SectionBase, key


class WarnAfter(SectionBase, frozen=True):
    """Repetitions before a warning."""

    exact_failure: Annotated[int, key("The same call failed this often.", ge=1)] = 2
    same_tool_failure: Annotated[int, key("The same tool failed this often in a turn.", ge=1)] = 3
    idempotent_no_progress: Annotated[int, key("A read-only call gave the same result this often.", ge=1)] = 2


class HardStopAfter(SectionBase, frozen=True):
    """Repetitions before the turn is ended."""

    exact_failure: Annotated[int, key("The same call failed this often.", ge=1)] = 5
    same_tool_failure: Annotated[int, key("The same tool failed this often in a turn.", ge=1)] = 8
    idempotent_no_progress: Annotated[int, key("A read-only call gave the same result this often.", ge=1)] = 5


class Section(SectionBase, frozen=True):
    """When a model that goes in circles is warned, and when it is stopped."""

    warnings_enabled: Annotated[bool, key("Tell the model when it repeats itself.")] = True
    hard_stop_enabled: Annotated[bool, key("End the turn when it goes on repeating itself.")] = True
    warn_after: Annotated[WarnAfter, key("Repetitions before a warning.")] = WarnAfter()
    hard_stop_after: Annotated[HardStopAfter, key("Repetitions before the turn is ended.")] = HardStopAfter()
