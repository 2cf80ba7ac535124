"""The skills that a run begins with: what `--skills` asks for, read and checked before anything is sent."""

from dataclasses import replace
from typing import TYPE_CHECKING

from msgspec import Struct

from hermes.config.sections.terminal import Section as Terminal
from hermes.config.settings import Settings
from hermes.surfaces.cli.chat.wish import Wish
from hermes.surfaces.cli.context import Cli

if TYPE_CHECKING:
    from hermes.extensions.skills.skill_desk import SkillDesk
    from hermes.extensions.skills.skill_file import SkillHead


class Loaded(Struct, frozen=True):
    """Skills that were asked for, and the desk they come from."""

    desk: "SkillDesk"
    skills: "tuple[SkillHead, ...]"

    def text(self, session_id: str) -> str:
        """What the model is told of them."""
        self.desk.session_id = session_id
        parts = [self.desk.text_of(skill) for skill in self.skills]
        return "\n\n".join(["The user has loaded these skills; follow them where they fit the task.", *parts])


def loaded_skills(cli: Cli, wish: Wish, settings: Settings) -> tuple[Loaded | None, Settings]:
    """The skills of this run, and the settings with the variables that their commands need; notes say what lacks."""
    if not wish.skills:
        return None, settings
    from hermes.extensions.skills.skill_book import SkillBook  # paid by who names one
    from hermes.extensions.skills.skill_desk import SkillDesk
    from hermes.runtime.setup.skill_setup import keys_of_providers, skill_services

    desk = SkillDesk(SkillBook(settings, wish.source), skill_services(settings))
    skills = tuple(desk.trusted(name) for name in wish.skills)
    passed = list(settings.of(Terminal).env_passthrough)
    own = keys_of_providers(settings)
    for skill in skills:
        for variable in (one.name for one in skill.variables):
            if variable in own:
                cli.out.note(f"{skill.name} asks for {variable}, a key of a model's provider; no command is given it.")
            elif not settings.lookup(variable):
                how = f"export it, or: hermes config set {variable} VALUE"
                cli.out.note(f"{skill.name} needs {variable}, which is not set; {how}")
            else:
                passed.append(variable)
    changed = {**settings.flags, "terminal.env_passthrough": list(dict.fromkeys(passed))}
    return Loaded(desk, skills), replace(settings, flags=changed, _made={})
