"""Faults of a memory provider in earlier turns, kept for doctor: a file for each method, the newest of each."""

import os
import time
from pathlib import Path

import msgspec
from msgspec import Struct

from hermes.config import paths
from hermes.typed import from_json

KEPT_S = 7 * 24 * 3600.0  # what failed longer ago and not since is no news


class KeptFault(Struct, frozen=True):
    """When and why a method of a provider failed."""

    provider: str
    method: str
    why: str
    at: float

    def sentence(self) -> str:
        when = time.strftime("%Y-%m-%d %H:%M", time.localtime(self.at))
        return f"the memory provider {self.provider!r} failed in {self.method} at {when}: {self.why}"


def keep_fault(home: Path, fault: KeptFault) -> None:
    """Whole or not at all for who reads it; the newest of several processes stays."""
    folder = _folder(home)
    paths.made(folder)
    fresh = folder / f"{fault.method}.{os.getpid()}"
    fresh.write_bytes(msgspec.json.encode(fault))
    fresh.replace(folder / f"{fault.method}.json")


def kept_faults(home: Path, provider: str, now: float) -> list[KeptFault]:
    """Those of this provider that are news still, the newest first."""
    found: list[KeptFault] = []
    for file in _folder(home).glob("*.json"):
        try:
            found.append(from_json(file.read_bytes(), KeptFault))
        except (OSError, msgspec.MsgspecError):
            continue  # it goes with the next fault of that method
    ours = [fault for fault in found if fault.provider == provider and now - fault.at < KEPT_S]
    return sorted(ours, key=lambda fault: -fault.at)


def _folder(home: Path) -> Path:
    return paths.cache_dir(home) / "recall" / "faults"
