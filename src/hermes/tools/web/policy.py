"""What a gate need not ask about: reading a page that may be fetched, and asking the user's search service."""

from hermes.seams import Action


def is_ordinary(action: Action) -> bool:
    """Whether a network action only reads: a GET, or a search through the service that the settings chose.

    Private addresses never get as far as a gate unless the user's settings name them.
    """
    return action.kind == "network" and action.details.get("method") in ("GET", "SEARCH")
