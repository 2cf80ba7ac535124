"""The variables a script sees: few, named by rule, and none that looks like a secret.

Standard library only and Python 3.8: on a remote backend this very text runs there, in front of the script.
"""

import os
from collections.abc import Iterable, Mapping

_SECRET_PARTS = (
    *("KEY", "TOKEN", "SECRET", "PASSWORD", "CREDENTIAL", "PASSWD", "AUTH"),
    *("DSN", "WEBHOOK", "CREDS", "BEARER", "APIKEY"),
)
_KEPT = frozenset(
    (
        *("PATH", "HOME", "USER", "LANG", "LANGUAGE", "TERM", "TMPDIR", "TMP", "TEMP", "SHELL", "LOGNAME"),
        *("PYTHONPATH", "VIRTUAL_ENV", "HERMES_HOME", "HERMES_PROFILE", "HERMES_CONFIG", "HERMES_ENV"),
        "HERMES_CHILD_OF",
    )
)
_KEPT_PREFIXES = ("LC_", "XDG_", "CONDA")
_SETTINGS = {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONIOENCODING": "utf-8", "PYTHONUTF8": "1"}
_USUAL_PATH = "/usr/local/bin:/usr/bin:/bin"


def child_environment(
    environ: "Mapping[str, str]", passthrough: "Iterable[str]", added: "Mapping[str, str]"
) -> "dict[str, str]":
    """`environ` by the rules: what is passed through, then nothing that looks secret, then the short list.

    `added` comes on top; its PYTHONPATH is put before the one that was there.
    """
    allowed = frozenset(passthrough)
    kept = {name: value for name, value in environ.items() if name in allowed or _is_kept(name)}
    kept.setdefault("PATH", _USUAL_PATH)
    zone = environ.get("HERMES_TIMEZONE")
    if zone:
        kept["TZ"] = zone
    home = (environ.get("HERMES_HOME") or "") + "/home"
    if home != "/home" and os.path.isdir(home):  # noqa: PTH112 - see the module's first lines
        kept["HOME"] = home
    older = kept.get("PYTHONPATH")
    kept.update(_SETTINGS)
    kept.update(added)
    if older and "PYTHONPATH" in added:
        kept["PYTHONPATH"] = added["PYTHONPATH"] + os.pathsep + older
    return kept


def _is_kept(name: str) -> bool:
    upper = name.upper()
    if any(part in upper for part in _SECRET_PARTS):
        return False
    return name in _KEPT or name.startswith(_KEPT_PREFIXES)
