"""What one run of a script may take. Apart from what is told of runs: the tool's description needs only this."""

from msgspec import Struct


class ScriptLimits(Struct, frozen=True, kw_only=True):
    """What one run may take."""

    timeout_s: float = 300.0
    max_calls: int = 50
    max_processes: int = 256
    term_grace_s: float = 5.0
