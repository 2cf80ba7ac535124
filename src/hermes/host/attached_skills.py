"""The skills that a run begins with: those that were asked for, read and checked before anything is sent."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from msgspec import Struct

from hermes.config.sections.terminal import Section as Terminal
from hermes.config.sections.top import Section as Top
from hermes.config.settings import Settings
from hermes.extensions.skills import Skill, Skills
from hermes.models.providers.catalogue import providers


class AttachedSkills(Struct, frozen=True):
    """Skills that were asked for, and the book they come from."""

    book: Skills
    skills: tuple[Skill, ...]

    def text(self, session_id: str) -> str:
        """What the model is told of them."""
        return self.book.text(self.skills, session_id)


def attached_skills(
    names: Sequence[str], source: str, settings: Settings, tell: Callable[[str], None]
) -> tuple[AttachedSkills | None, Settings]:
    """The skills of this run, and the settings with the variables that their commands need; `tell` says what lacks."""
    if not names:
        return None, settings
    book = Skills(settings, source)
    skills = tuple(book.load(name) for name in names)
    passed = list(settings.of(Terminal).env_passthrough)
    own = _keys_of_providers(settings)
    for skill in skills:
        for variable in skill.variables:
            if variable in own:
                tell(f"{skill.name} asks for {variable}, a key of a model's provider; no command is given it.")
            elif settings.lookup(variable) is None:
                how = f"export it, or: hermes config set {variable} VALUE"
                tell(f"{skill.name} needs {variable}, which is not set; {how}")
            else:
                passed.append(variable)
    changed = {**settings.flags, "terminal.env_passthrough": list(dict.fromkeys(passed))}
    return AttachedSkills(book, skills), replace(settings, flags=changed, _made={})


def _keys_of_providers(settings: Settings) -> set[str]:
    """The variables that hold keys of models' providers: the usual ones, and those that the configuration names."""
    top = settings.of(Top)
    usual = {name for entry in providers().values() for name in entry.env}
    own = {each.key_env for each in (*top.providers.values(), *top.custom_providers)}
    return usual | own | {each.key_env for each in top.fallback_providers}
