"""How a turn ended, for a command line: the exit code, and what to type next."""

from collections.abc import Mapping
from typing import Any

from hermes.host.turn_verdict import TurnVerdict, is_broken, verdict_of, why_for
from hermes.surfaces.cli.exit_codes import Exit

MISFIT = "output_mismatch"  # why a turn failed whose answer is not the data that was asked for


def exit_code(result: Mapping[str, Any]) -> Exit:
    """The exit code for the kernel's result; exit codes and verdicts have the same names."""
    if result.get("error_reason") == MISFIT:
        return Exit.MISFIT
    return Exit[verdict_of(result).name]


def words_for(code: Exit, result: Mapping[str, Any]) -> str:
    """Why there is no full answer, and what to do next; empty when there is one."""
    said = "continue" if is_broken(result) else "…"
    session = f"hermes chat --resume {result.get('session_id', 'ID')} -q {said}"
    match code:
        case Exit.MISFIT:
            return f"{result['error']}; go on with: {session}"
        case Exit.EMPTY | Exit.REFUSED:
            return f"{why_for(TurnVerdict[code.name], result)}; ask again with: {session}"
        case Exit.BUDGET | Exit.PROVIDER | Exit.TOOL | Exit.CANCELLED:
            return f"{why_for(TurnVerdict[code.name], result)}; go on with: {session}"
        case _:
            return why_for(TurnVerdict[code.name], result)
