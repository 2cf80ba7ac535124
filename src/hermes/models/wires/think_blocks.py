"""Reasoning that a model writes into its answer as a leading `<think>` block, parted from the answer as it streams."""

_TAGS = ("think", "thinking", "reasoning", "REASONING_SCRATCHPAD")
_OPENINGS = tuple(f"<{tag}>" for tag in _TAGS)
_MOST_SPACE = 1_000  # before a block; what begins with more of it is words


class ThinkSplitter:
    """Feed it the pieces of an answer, cut anywhere; it gives back reasoning and words.

    Only a block that opens the answer counts: the same tag further on is something the model talks about.
    """

    _closing = ""  # of the block that is open
    _held = ""
    _decided = False
    is_done = False  # whether all that follows is words

    def feed(self, text: str) -> tuple[str, str]:
        """(reasoning, words) that `text` makes certain."""
        if self.is_done:
            return "", text
        found = self._parted(text)
        self.is_done = self._decided and not self._closing
        return found

    def _parted(self, text: str) -> tuple[str, str]:
        text = self._held + text
        self._held = ""
        if not self._decided:
            start = text.lstrip()
            if start and start[0] != "<":
                self._decided = True
                return "", text
            found = next((opening for opening in _OPENINGS if start.startswith(opening)), None)
            is_open = not start or any(opening.startswith(start) for opening in _OPENINGS)
            if found is None and is_open and len(text) <= _MOST_SPACE:
                self._held = text
                return "", ""
            self._decided = True
            if found is None:
                return "", text
            self._closing = f"</{found[1:]}"
            text = start[len(found) :]
        return self._inside(text)

    def rest(self) -> str:
        """What was held back, at the end of the answer; an unclosed block is reasoning and not given again."""
        held, self._held = self._held, ""
        return "" if self._closing else held

    def _inside(self, text: str) -> tuple[str, str]:
        thought, closing, after = text.partition(self._closing)
        if closing:
            self._closing = ""
            return thought, after.lstrip("\n")
        keep = next((n for n in range(len(self._closing) - 1, 0, -1) if text.endswith(self._closing[:n])), 0)
        self._held = text[len(text) - keep :] if keep else ""
        return text[: len(text) - keep], ""
