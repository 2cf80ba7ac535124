"""What the terminal shows."""

from typing import Annotated, Literal

from hermes.config.section import SectionBase, key


class Section(SectionBase, frozen=True):
    """What the terminal shows."""

    compact: Annotated[bool, key("Leave out blank lines and decoration.")] = False
    resume_display: Annotated[Literal["full", "minimal"], key("How much of the past a resumed session shows.")] = "full"
    resume_exchanges: Annotated[int, key("Exchanges shown when a session is resumed.", ge=0)] = 10
    busy_input_mode: Annotated[
        Literal["interrupt", "queue", "steer"], key("What a message typed during a turn does.")
    ] = "queue"  # a message sent by mistake must not end work under way
    bell_on_complete: Annotated[bool, key("Ring the terminal's bell at the end of a turn.")] = False
    terminal_title: Annotated[bool, key("Show the session's title in the terminal's own title.")] = False
    show_reasoning: Annotated[bool, key("Show what the model thinks before it answers.")] = False
    theme: Annotated[
        Literal["auto", "dark", "light"], key("Colours for a dark or a light background; auto asks the terminal.")
    ] = "auto"
    streaming: Annotated[bool, key("Show the answer while it is written.")] = True
    timestamps: Annotated[bool, key("Show the time beside each message.")] = False
    inline_diffs: Annotated[bool, key("Show edits as diffs.")] = True
    show_cost: Annotated[bool, key("Show the price of a session in the status line.")] = False
    tool_progress: Annotated[Literal["off", "new", "all", "verbose"], key("Which tool calls get a line.")] = "all"
    language: Annotated[str, key("Language of Hermes' own words.", env="HERMES_LANGUAGE", pending=True)] = "en"

    @classmethod
    def fold(cls, plain: object) -> object:
        if isinstance(plain, dict) and plain.get("tool_progress") is False:
            return {**plain, "tool_progress": "off"}  # YAML reads `off` as false
        return plain
