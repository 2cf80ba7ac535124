"""The skills that a run begins with: what `--skills` asks for, read and checked before anything is sent."""

from dataclasses import replace

from msgspec import Struct

from hermes.config.sections.terminal import Section as Terminal
from hermes.config.sections.top import Section as Top
from hermes.config.settings import Settings
from hermes.extensions.skills import Skill, Skills
from hermes.models.providers.catalogue import providers
from hermes.surfaces.cli.chat.wish import Wish
from hermes.surfaces.cli.context import Cli


class Loaded(Struct, frozen=True):
    """Skills that were asked for, and the book they come from."""

    book: Skills
    skills: tuple[Skill, ...]

    def text(self, session_id: str) -> str:
        """What the model is told of them."""
        return self.book.text(self.skills, session_id)


def loaded_skills(cli: Cli, wish: Wish, settings: Settings) -> tuple[Loaded | None, Settings]:
    """The skills of this run, and the settings with the variables that their commands need; notes say what lacks."""
    if not wish.skills:
        return None, settings
    book = Skills(settings, wish.source)
    skills = tuple(book.load(name) for name in wish.skills)
    passed = list(settings.of(Terminal).env_passthrough)
    own = _keys_of_providers(settings)
    for skill in skills:
        for variable in skill.variables:
            if variable in own:
                cli.out.note(f"{skill.name} asks for {variable}, a key of a model's provider; no command is given it.")
            elif settings.lookup(variable) is None:
                how = f"export it, or: hermes config set {variable} VALUE"
                cli.out.note(f"{skill.name} needs {variable}, which is not set; {how}")
            else:
                passed.append(variable)
    changed = {**settings.flags, "terminal.env_passthrough": list(dict.fromkeys(passed))}
    return Loaded(book, skills), replace(settings, flags=changed, _made={})


def _keys_of_providers(settings: Settings) -> set[str]:
    """The variables that hold keys of models' providers: the usual ones, and those that the configuration names."""
    top = settings.of(Top)
    usual = {name for entry in providers().values() for name in entry.env}
    own = {each.key_env for each in (*top.providers.values(), *top.custom_providers)}
    return usual | own | {each.key_env for each in top.fallback_providers}
