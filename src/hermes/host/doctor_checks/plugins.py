"""Whether the plugins that are switched on load, and what they register that nothing uses."""

from collections.abc import Iterable
from pathlib import Path

from hermes.config.load import load_settings
from hermes.errors import UserError
from hermes.extensions.plugins.find_plugins import SAFE_MODE, is_on
from hermes.extensions.plugins.hook_faults import kept_faults
from hermes.extensions.plugins.plugin_set import required
from hermes.host.doctor import Check, Finding, ok, problem, warning
from hermes.host.installation import Installation
from hermes.host.plugin_care import PluginCare


def run(installation: Installation) -> Iterable[Finding]:
    settings = load_settings(installation.home, environ=installation.environ)
    if is_on(settings.environ, SAFE_MODE):
        yield warning("safe mode: no plugins and no hooks run")
        return
    try:
        states = PluginCare(settings).states()
    except UserError as error:
        yield problem(str(error), "hermes plugins list")
        return
    on = [one for one in states if one.status == "enabled"]
    sound = [one for one in on if not one.error]
    yield ok(f"{len(sound)} of {len(on)} plugins load; {len(states) - len(on)} are not switched on")
    yield from _hook_faults(settings.home)
    musts = set(required(settings))
    for one in on:
        key = one.manifest.key
        if one.error:
            denies = "; it is required, so no tool runs" if key in musts else ""
            yield problem(f"the plugin {key!r} is not loaded: {one.error}{denies}", f"hermes plugins info {key}")
        for line in (*one.manifest.warnings, *(one.offers.warnings if one.offers is not None else ())):
            yield warning(f"the plugin {key!r}: {line}", f"hermes plugins info {key}")
    for key in sorted(musts - {name for one in on for name in (one.manifest.key, one.manifest.name)}):
        yield problem(
            f"the plugin {key!r} is required and not switched on, so no tool runs", f"hermes plugins enable {key}"
        )


def _hook_faults(home: Path) -> Iterable[Finding]:
    """What the last session that had hooks saw of them."""
    for one in kept_faults(home):
        if one.lost:
            yield warning(
                f"{one.lost} events did not fit the queue of {one.owner!r} in the last session; it is too slow"
            )
        else:
            yield warning(
                f"the hook {one.hook} of {one.owner!r} failed in the last session ({one.words})", "hermes logs"
            )


CHECK = Check(title="Plugins", run=run)
