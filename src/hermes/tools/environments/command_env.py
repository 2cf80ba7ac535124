"""The environment that commands get: the user's own, without credentials; and who knows those, to hide them."""

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from hermes.config.section import is_secret
from hermes.config.settings import Settings
from hermes.redact import Redactor


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_SECRET_WORDS = _words(
    """APIKEY AUTH AUTHTOKEN CREDENTIAL CREDENTIALS CREDS DSN JWT KEY KEYS PASS PASSPHRASE PASSWD PASSWORD PAT PRIVATE
    PWD PW SECRET SECRETS SESSION TOKEN TOKENS WEBHOOK"""
)
# Written together with what is before it, as in PGPASSWORD.
_SECRET_ENDS = ("APIKEY", "CONNECTION_STRING", "CREDENTIALS", "PASSWD", "PASSWORD", "SECRET", "SSHPASS", "TOKEN")
# Names that hold one of the words above and are no secret.
_HARMLESS = _words(
    """DBUS_SESSION_BUS_ADDRESS DESKTOP_SESSION OLDPWD PWD SESSION_MANAGER SSH_AUTH_SOCK TMUX_SESSION
    XDG_SESSION_CLASS XDG_SESSION_DESKTOP XDG_SESSION_ID XDG_SESSION_PATH XDG_SESSION_TYPE ZELLIJ_SESSION_NAME"""
)
# Credentials of the runtime itself whose names do not say so.
_OWN = _words("SUDO_PASSWORD TWILIO_ACCOUNT_SID EMAIL_ADDRESS NTFY_TOPIC")
_OWN_PREFIXES = ("_HERMES_", "HERMES_API_", "TERMINAL_SSH_", "MATRIX_", "SIGNAL_", "WHATSAPP_", "TELEGRAM_")
_URL_WITH_PASSWORD = re.compile(r"[a-z][a-z0-9+.-]*://[^/\s:@]*:[^/\s@]+@", re.IGNORECASE)
_FORCE = "_HERMES_FORCE_"
_USUAL_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@lru_cache(maxsize=1024)  # of the same few dozen names for every session
def is_secret_name(name: str) -> bool:
    """Whether a variable of this name is taken for a credential."""
    upper = name.upper()
    if upper in _HARMLESS:
        return False
    if upper in _OWN or upper.startswith(_OWN_PREFIXES) or upper.endswith(_SECRET_ENDS):
        return True
    return not _SECRET_WORDS.isdisjoint(upper.split("_"))


def redactor_of(settings: Settings, *more: str | None) -> Redactor:
    """A redactor that knows the secrets of the environment, of .env and of config.yaml, and `more`."""
    made = settings.once(_own_redactor).copy()
    for value in more:
        made.register(value or "", "api_key")
    return made


def _own_redactor(settings: Settings) -> Redactor:
    made = Redactor(is_on=bool(settings.mapping["security"]["redact_secrets"]))
    made.register_all(settings.environ, is_secret_name)
    made.register_all(settings.secrets, is_secret_name)
    _register_tree(made, settings.tree)
    _register_tree(made, settings.flags)
    return made


def _register_tree(made: Redactor, tree: Mapping[str, Any]) -> None:
    for name, value in tree.items():
        if isinstance(value, Mapping):
            _register_tree(made, value)
        elif isinstance(value, str) and is_secret(str(name)) and not value.startswith("${"):
            made.register(value, str(name))


def scrubbed(environ: Mapping[str, str], passthrough: Iterable[str] = ()) -> dict[str, str]:
    """`environ` as commands see it: without credentials, except the names in `passthrough`.

    A variable `_HERMES_FORCE_<NAME>` sets `<NAME>`. PATH is completed where it lacks the usual folders.
    """
    allowed = set(passthrough)
    kept = {
        name: value
        for name, value in environ.items()
        if name in allowed or not (is_secret_name(name) or _holds_password(name, value))
    }
    for name, value in environ.items():
        if name.startswith(_FORCE):
            kept[name.removeprefix(_FORCE)] = value
    path = kept.get("PATH", "")
    if "/usr/bin" not in path.split(":"):
        kept["PATH"] = f"{path}:{_USUAL_PATH}" if path else _USUAL_PATH
    return kept


def _holds_password(name: str, value: str) -> bool:
    # A proxy with a password in it is how the network is reached at all.
    return not name.lower().endswith("_proxy") and bool(_URL_WITH_PASSWORD.match(value))
