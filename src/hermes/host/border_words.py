"""What confines the commands of a session, in a sentence for the person."""

from hermes.config.sections import terminal
from hermes.config.settings import Settings
from hermes.errors import ToolError
from hermes.runtime.setup.process import shared
from hermes.tools.supervisor.confine.probe import enforcement


async def border_words(settings: Settings, cwd: str, *, only_missing: bool = False) -> str:
    """Empty where commands run elsewhere; with `only_missing` also where they are confined as well as can be."""
    section = settings.of(terminal.Section)
    if section.backend != "local":
        return ""
    if section.sandbox == "off":
        return "Commands are not confined: terminal.sandbox is off."
    try:
        found = await enforcement(shared.supervisor, section.sandbox_level, cwd)
    except ToolError as error:
        return f"What confines commands could not be found out: {error}"
    if only_missing and found.level == "full":
        return ""
    return f"Commands are confined at level {found.level}{f': {found.why}' if found.why else ''}"
