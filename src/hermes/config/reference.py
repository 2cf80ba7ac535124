"""The reference of all settings, made from the sections themselves: `python -m hermes.config.reference`."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from hermes.config.audit import section_names, section_type
from hermes.config.section import SectionBase, keys_of, struct_inside, type_text
from hermes.config.values import plain

MARK = "<!-- From here on this page is made from src/hermes/config/sections: python -m hermes.config.reference -->"


def reference() -> str:
    """Every section with its keys, as Markdown."""
    return "\n".join(_page())


def renewed(page: str) -> str:
    """`page` with everything below the mark made anew."""
    return f"{page.partition(MARK)[0]}{MARK}\n\n{reference()}"


def _page() -> Iterator[str]:
    yield from _section("", section_type("top"), "Keys at the top")
    for name in section_names():
        yield from _section(name, section_type(name), f"`{name}`")


def _section(name: str, kind: type[SectionBase], heading: str) -> Iterator[str]:
    yield f"## {heading}\n"
    yield f"{' '.join((kind.__doc__ or '').split())}\n"
    if kind.PENDING:
        yield "This version does not act on these keys yet.\n"
    yield "| Key | Default | What it does |"
    yield "| --- | --- | --- |"
    yield from _rows(kind, f"{name}." if name else "", quiet=kind.PENDING)
    yield ""


def _rows(kind: type[SectionBase], prefix: str, *, quiet: bool, within: Any = None) -> Iterator[str]:
    """A row for each key of `kind`, or of its keys; `within` is what the section above has there by default."""
    for key in keys_of(kind):
        inner, shape = struct_inside(key.type)
        default = getattr(within, key.name, key.default)
        notes = [key.description]
        if inner is None or shape != "one":
            notes.append(f"({type_text(key.type)})")
        if key.env:
            notes.append("Variable: " + ", ".join(f"`{each}`" for each in key.env) + ".")
        if key.pending and not quiet:
            notes.append("Not acted on yet.")
        if inner is None or shape != "one":
            yield f"| `{prefix}{key.name}` | {_default(default)} | {_cell(' '.join(notes))} |"
        if inner is not None:
            below = {"one": "", "list": "[].", "dict": ".NAME."}[shape]
            one = default if shape == "one" else None
            yield from _rows(inner, f"{prefix}{key.name}{below or '.'}", quiet=quiet or key.pending, within=one)


def _default(value: Any) -> str:
    if value in ("", None, (), {}):
        return ""
    return f"`{_cell(msgspec.json.encode(plain(value)).decode())}`"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def main() -> int:
    """Renew docs/configuration.md of this checkout."""
    page = Path(__file__).parents[3] / "docs" / "configuration.md"
    if not page.exists():
        sys.stdout.write(reference())
        return 0
    page.write_text(renewed(page.read_text(encoding="utf-8")), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
