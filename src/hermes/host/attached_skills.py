"""The skills that a run begins with: those that were asked for, read and checked before anything is sent."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from hermes.config.sections.terminal import Section as Terminal
from hermes.config.settings import Settings

if TYPE_CHECKING:
    from hermes.extensions.skills.skill_desk import SkillDesk
    from hermes.extensions.skills.skill_file import SkillHead


class AttachedSkills(Struct, frozen=True):
    """Skills that were asked for, and the desk they come from."""

    desk: "SkillDesk"
    skills: "tuple[SkillHead, ...]"

    def text(self, session_id: str) -> str:
        """What the model is told of them."""
        self.desk.session_id = session_id
        parts = [self.desk.text_of(skill) for skill in self.skills]
        return "\n\n".join(["The user has loaded these skills; follow them where they fit the task.", *parts])


def attached_skills(
    names: Sequence[str], source: str, settings: Settings, tell: Callable[[str], None]
) -> tuple[AttachedSkills | None, Settings]:
    """The skills of this run, and the settings with the variables that their commands need; `tell` says what lacks."""
    if not names:
        return None, settings
    from hermes.extensions.skills.skill_book import SkillBook  # paid by who names one
    from hermes.extensions.skills.skill_desk import SkillDesk
    from hermes.runtime.setup.skill_setup import keys_of_providers, skill_services

    desk = SkillDesk(SkillBook(settings, source), skill_services(settings))
    skills = tuple(desk.trusted(name) for name in names)
    passed = list(settings.of(Terminal).env_passthrough)
    own = keys_of_providers(settings)
    for skill in skills:
        for variable in (one.name for one in skill.variables):
            if variable in own:
                tell(f"{skill.name} asks for {variable}, a key of a model's provider; no command is given it.")
            elif not settings.lookup(variable):
                how = f"export it, or: hermes config set {variable} VALUE"
                tell(f"{skill.name} needs {variable}, which is not set; {how}")
            else:
                passed.append(variable)
    return AttachedSkills(desk, skills), settings.with_flags({"terminal.env_passthrough": list(dict.fromkeys(passed))})
