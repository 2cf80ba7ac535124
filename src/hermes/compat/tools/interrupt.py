"""`tools.interrupt`: calls are cancelled here, so a handler is never asked to look."""


def is_interrupted() -> bool:
    """False: a call that the user stops is cancelled, and what it would return is not waited for."""
    return False


__all__ = ["is_interrupted"]
