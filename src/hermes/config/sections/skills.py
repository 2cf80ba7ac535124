"""Skills: where they are looked for, and which are switched off."""

from typing import Annotated

from msgspec import field

from hermes.config.section import SectionBase, key


class Section(SectionBase, frozen=True):
    """Skills: where they are looked for, and which are switched off."""

    external_dirs: Annotated[tuple[str, ...], key("Folders with more skills; those of the home win.")] = ()
    template_vars: Annotated[bool, key("Fill in ${HERMES_SKILL_DIR} and ${HERMES_SESSION_ID} in a skill.")] = True
    write_approval: Annotated[bool, key("Let every change that the agent makes wait for your yes.")] = False
    creation_nudge_interval: Annotated[
        int, key("Rounds of tools between two reviews of what should become a skill; 0 is never.", ge=0)
    ] = 10
    disabled: Annotated[tuple[str, ...], key("Skills that are not offered.")] = ()
    platform_disabled: Annotated[dict[str, tuple[str, ...]], key("The same for one way in: cli, cron, acp.")] = field(
        default_factory=dict
    )
