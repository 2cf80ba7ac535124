"""Names of calls that are told apart within a session, and are the same live and in a replay."""


class CallIds:
    """Some servers number the calls of each answer from one: the second `call_1` of a session is `call_1#2`."""

    def __init__(self) -> None:
        self._seen: dict[str, int] = {}

    def begin(self, call_id: str) -> str:
        """The name of a call that starts."""
        self._seen[call_id] = self._seen.get(call_id, 0) + 1
        return self.known(call_id)

    def known(self, call_id: str) -> str:
        """The name of the newest call with this id."""
        count = self._seen.get(call_id, 1)
        return call_id if count == 1 else f"{call_id}#{count}"
