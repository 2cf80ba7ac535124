"""How much work one judgement may take. Steps are counted, never time: the same text always gets the same answer."""

STEPS = 34_000  # a step is two to three microseconds on a quiet core; see bench/approval.py
TOO_INTRICATE = "it is too intricate to be judged in reasonable time, so a person must decide"


class TooIntricate(Exception):
    """The budget is used up. Only the outermost caller catches it: what was being judged is not known to be safe."""


class Budget:
    """The steps that are left, shared by all that takes part in one judgement: shell, Python, other code, scripts.

    A judge takes a step for each thing it looks at, and more where one look costs more (a text that is copied, a tree
    that is walked). Running out is an exception and no result, so that no caller in between can go on as if a part had
    been found harmless.
    """

    __slots__ = ("left",)

    def __init__(self, steps: int = STEPS) -> None:
        self.left = steps

    def spend(self, steps: int = 1) -> None:
        """Take `steps`; raise `TooIntricate` when there are not as many left, now and ever after."""
        self.left -= steps
        if self.left < 0:
            raise TooIntricate
