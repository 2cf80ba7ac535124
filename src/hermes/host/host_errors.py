"""What a host refuses, in the few kinds that each surface maps to its protocol in one table."""

from typing import Literal, TypeAlias

from hermes.errors import HermesError, SessionInUse, SessionNotFound, UserError

ErrorKind: TypeAlias = Literal["not_found", "busy", "invalid", "refused", "nothing_pending", "failed"]


class SessionBusy(UserError):
    """A turn runs that has to end first."""


class RequestRefused(UserError):
    """Understood, and not done: a rule or a limit says no."""


class NothingPending(UserError):
    """There is nothing to answer or to stop."""


def kind_of_error(error: HermesError) -> ErrorKind:
    """Which of the kinds an error is; what no caller can mend is a failure."""
    match error:
        case SessionNotFound():
            return "not_found"
        case SessionBusy() | SessionInUse():
            return "busy"
        case NothingPending():
            return "nothing_pending"
        case RequestRefused():
            return "refused"
        case UserError():
            return "invalid"
        case _:
            return "failed"
