"""What was recalled for the last message of a session, and why: kept by the provider, else read from the session."""

import os
from pathlib import Path

import msgspec
from msgspec import Struct

from hermes.config import paths
from hermes.context.memory.provider_calls import NOTE
from hermes.ops import SessionRecord
from hermes.state.message_rows import MEMORY_CLOSING, MEMORY_OPENING
from hermes.typed import from_json


class RecallReport(Struct, frozen=True):
    """A question, and what was found for it."""

    query: str
    lines: list[str]


def report_file(home: Path, session: int) -> Path:
    """Where a provider of this machine keeps the report of a session."""
    return paths.cache_dir(home) / "recall" / "why" / f"{session:016x}.json"


def keep_report(file: Path, report: RecallReport) -> None:
    """Whole or not at all for who reads it; nobody needs it after a power cut, so nobody waits for the disk."""
    paths.made(file.parent)
    fresh = file.with_suffix(f".{os.getpid()}")
    fresh.write_bytes(msgspec.json.encode(report))
    fresh.replace(file)


def recall_lines(home: Path, record: SessionRecord | None, session: int) -> list[str]:
    """The lines that were recalled for the newest message, with their reasons where they are known."""
    if record is None or not record.messages:
        return []
    newest = max((message.id or 0 for message in record.messages if message.role == "user"), default=0)
    context = record.contexts.get(newest, "")
    if MEMORY_OPENING not in context:
        return []
    told = context.partition(MEMORY_OPENING)[2].partition(MEMORY_CLOSING)[0].replace(NOTE, "").strip().splitlines()
    try:
        kept = from_json(report_file(home, session).read_bytes(), RecallReport)
    except (FileNotFoundError, msgspec.DecodeError):
        return told
    return kept.lines if len(kept.lines) == len(told) else told
