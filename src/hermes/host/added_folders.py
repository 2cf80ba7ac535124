"""Folders that a person opens for one session, beside the workspace: `--add-dir` and `/add-dir`."""

import os
from collections.abc import Sequence
from pathlib import Path

from hermes.config.sections import terminal
from hermes.config.settings import Settings
from hermes.errors import UserError


def with_added_folders(settings: Settings, folders: Sequence[str]) -> Settings:
    """The settings of a run whose commands may write below `folders`, too."""
    if not folders:
        return settings
    added = [real_folder(folder, str(Path.cwd())) for folder in folders]
    writable = [*settings.of(terminal.Section).sandbox_writable, *added]
    return settings.with_flags({"terminal.sandbox_writable": writable})


def real_folder(folder: str, launched_in: str) -> str:
    """Where `folder` leads now: what is put in its place later is not what the person opened."""
    real = os.path.realpath(os.path.join(launched_in, os.path.expanduser(folder)))  # noqa: PTH111, PTH118
    if not os.path.isdir(real):  # noqa: PTH112
        raise UserError(f"{folder!r} is no folder; name one that is there")
    if real == "/":
        raise UserError("that is the whole machine; for this there is: hermes config set terminal.sandbox open")
    return real
