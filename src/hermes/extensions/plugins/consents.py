"""What the operator has said yes to: the declaration of each plugin, by its key, in the home."""

import time
from pathlib import Path

import msgspec
from msgspec import Struct, field

from hermes.config.paths import write_private
from hermes.errors import UserError
from hermes.extensions.plugins.manifest import PluginManifest
from hermes.typed import from_json

FILE = "plugin-consents.json"


class PluginConsent(Struct, frozen=True, kw_only=True):
    """One yes: to what was declared then, and since when."""

    declaration: str
    lines: tuple[str, ...] = ()
    since: float = 0.0

    def objection(self, manifest: PluginManifest) -> str:
        """Why the plugin may not be loaded: it declares something else than what was allowed. Empty when it may."""
        if self.declaration == manifest.declaration:
            return ""
        return f"what it declares to need has changed; look at it and allow it: hermes plugins enable {manifest.key}"


class _File(Struct, kw_only=True):
    plugins: dict[str, PluginConsent] = field(default_factory=dict)


class Consents:
    """The file. A plugin that nobody was asked about is taken as it is when it is first loaded."""

    def __init__(self, home: Path) -> None:
        self._file = home / FILE
        self._known: tuple[tuple[int, int], _File] | None = None  # as of this stamp

    def of(self, manifest: PluginManifest) -> PluginConsent | None:
        """The yes to this plugin, whatever it declares by now."""
        return self._read().plugins.get(manifest.key)

    def objection(self, manifest: PluginManifest) -> str:
        """Why it may not be loaded, by what was allowed; empty when it may, and when nobody was asked."""
        given = self.of(manifest)
        return "" if given is None else given.objection(manifest)

    def give(self, manifest: PluginManifest) -> None:
        """Remember the yes to what it declares now."""
        found = self._read()
        found.plugins[manifest.key] = PluginConsent(
            declaration=manifest.declaration, lines=tuple(manifest.declared()), since=time.time()
        )
        self._write(found)

    def take_back(self, key: str) -> None:
        """Forget the yes to a plugin that goes."""
        found = self._read()
        if found.plugins.pop(key, None) is not None:
            self._write(found)

    def _read(self) -> _File:
        try:
            info = self._file.stat()
            stamp = (info.st_mtime_ns, info.st_size)
            if self._known is None or self._known[0] != stamp:
                self._known = stamp, from_json(self._file.read_bytes(), _File)
            return self._known[1]
        except FileNotFoundError:
            return _File()
        except (OSError, msgspec.MsgspecError, ValueError) as error:
            raise UserError(f"cannot read {self._file}: {error}; delete it to be asked again") from error

    def _write(self, found: _File) -> None:
        text = msgspec.json.format(msgspec.json.encode(found), indent=2)
        write_private(self._file, f"{text.decode()}\n")
