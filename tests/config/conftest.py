"""A home to configure."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from hermes.config.load import load_settings
from hermes.config.settings import Settings

Load = Callable[..., Settings]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    folder.mkdir(mode=0o700)
    return folder


@pytest.fixture
def load(home: Path) -> Load:
    """`load(yaml, environ)`: the settings of a home with this config.yaml."""

    def load_it(text: str | None = None, environ: Mapping[str, str] | None = None, **options: Any) -> Settings:
        if text is not None:
            (home / "config.yaml").write_text(text, encoding="utf-8")
        return load_settings(home, environ=environ or {}, **options)

    return load_it
