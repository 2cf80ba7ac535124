"""Whether a model is configured."""

from collections.abc import Iterable

from hermes.config.load import load_settings
from hermes.config.sections import model
from hermes.errors import ConfigError
from hermes.surfaces.cli.context import Cli
from hermes.surfaces.cli.doctor import Check, Finding, ok, problem


def run(cli: Cli) -> Iterable[Finding]:
    try:
        section = load_settings(cli.home, environ=cli.environ).of(model.Section)
    except ConfigError as error:
        yield problem(str(error), "hermes config edit")
        return
    if not section.default and not section.base_url:
        yield problem("no model is configured", "hermes config set model.default NAME")
        return
    where = section.base_url or section.provider or "provider by key"
    yield ok(f"{section.default or 'the loaded model'} at {where}")


CHECK = Check(title="Model", run=run)
