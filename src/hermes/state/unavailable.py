"""What to tell a person when the session store cannot be used."""


def format_session_db_unavailable(error: BaseException | None = None) -> str:
    """One sentence with the reason and what to do."""
    reason = f": {error}" if error is not None and str(error) else ""
    return (
        f"The session store cannot be used{reason.rstrip('.')}. Nothing runs without it; "
        "`hermes sessions repair` looks at the file, and HERMES_HOME names another place."
    )
