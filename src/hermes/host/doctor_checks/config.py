"""Whether config.yaml and .env can be used."""

from collections.abc import Iterable

from hermes.config import paths
from hermes.config.load import load_settings
from hermes.errors import ConfigError
from hermes.host.doctor import Check, Finding, ok, problem, warning
from hermes.host.installation import Installation


def run(installation: Installation) -> Iterable[Finding]:
    file = paths.config_file(installation.home)
    try:
        settings = load_settings(installation.home, environ=installation.environ)
        for name in settings.mapping:
            settings.mapping[name]
    except ConfigError as error:
        yield problem(str(error), "hermes config edit")
        return
    yield ok(str(file) if file.exists() else "no config.yaml; the defaults act")
    for text in settings.warnings:
        yield warning(text, "hermes config edit")


CHECK = Check(title="Settings", run=run)
