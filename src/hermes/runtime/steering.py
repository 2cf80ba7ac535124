"""What the user says while a turn runs, kept until the model can hear it."""

from threading import Lock


class SteerBox:
    """Thread-safe: a surface puts words in, the loop takes them out after a round of tools."""

    def __init__(self) -> None:
        self._said: list[str] = []
        self._lock = Lock()  # guards _said

    def put(self, text: str) -> None:
        with self._lock:
            self._said.append(text)

    def take(self) -> str:
        """Everything said so far, in order; empty when nothing was."""
        if not self._said:
            return ""
        with self._lock:
            said, self._said = self._said, []
        return "\n".join(said)
