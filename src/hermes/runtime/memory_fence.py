"""An answer without what was recalled for it, where the model repeats its `<memory-context>`."""

from hermes.state.message_rows import MEMORY_CLOSING, MEMORY_OPENING


class MemoryFence:
    """Takes what was recalled out of a streamed answer that repeats it, wherever the pieces begin and end.

    A fence that is never closed is none: `rest` gives back what was held for it, so that no answer is lost to a tag.
    """

    def __init__(self) -> None:
        self._held = ""  # may be a tag that is not whole yet, or stands behind one that is not closed yet
        self._is_inside = False
        self._is_behind = False  # spaces after a fence belong to it, where there were some before it
        self._last = " "  # of what was shown

    def add(self, text: str) -> str:
        """What can be shown now."""
        if "<" not in text and not self._held and not self._is_behind:
            self._last = text[-1:] or self._last
            return text
        text, self._held = self._held + text, ""
        shown = []
        while text:
            if self._is_behind:
                text = text.lstrip() if self._last.isspace() else text
                self._is_behind = not text
            tag = MEMORY_CLOSING if self._is_inside else MEMORY_OPENING
            at = text.find(tag)
            if at < 0:
                break
            if self._is_inside:
                text, self._is_behind = text[at + len(tag) :], True
            else:
                shown.append(text[:at])
                self._last = text[:at][-1:] or self._last
                text = text[at:]
            self._is_inside = not self._is_inside
        waits = len(text) if self._is_inside else _begun(text)
        self._held = text[len(text) - waits :]
        shown.append(text[: len(text) - waits])
        self._last = shown[-1][-1:] or self._last
        return "".join(shown)

    def rest(self) -> str:
        """What is left at the end of the answer."""
        held, self._held, self._is_inside = self._held, "", False
        return held


def _begun(text: str) -> int:
    """How many characters at the end may be the beginning of a fence."""
    at = text.rfind("<", max(0, len(text) - len(MEMORY_OPENING) + 1))
    return len(text) - at if at >= 0 and MEMORY_OPENING.startswith(text[at:]) else 0
