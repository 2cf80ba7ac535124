"""Who of a family of children writes which file: the second one to write is told before it does."""

from collections.abc import Iterable

from msgspec import Struct, field

FILE = "file:"


class FileClaims(Struct):
    """The files that children of one turn have written, by the child that did so last."""

    _writer: dict[str, str] = field(default_factory=dict)
    _told: set[tuple[str, str]] = field(default_factory=set)  # a child and a file of another that it knows about

    def refusal(self, child: str, resources: Iterable[str]) -> str | None:
        """Why `child` should not write yet, once for each file; None when it may, and the files are its own then."""
        files = [one.removeprefix(FILE) for one in resources if one.startswith(FILE)]
        others = [(one, by) for one in files if (by := self._writer.get(one, child)) != child]
        news = [(one, by) for one, by in others if (child, one) not in self._told]
        if not news:
            self._writer.update(dict.fromkeys(files, child))
            return None
        self._told.update((child, one) for one, _ in news)
        named = ", ".join(f"{one!r} (by {by})" for one, by in news)
        return (
            f"nothing was written: another child of the same task has written {named}. Read it as it is now, keep "
            "what is there, and write again if you still have to"
        )
