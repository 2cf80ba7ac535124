"""How long and how hard a turn may work."""

from typing import Annotated, Literal

from msgspec import field

from hermes.config.section import PositiveNumber, SectionBase, key


class Section(SectionBase, frozen=True):
    """How long and how hard a turn may work."""

    max_turns: Annotated[int, key("Model calls a single turn may make.", env="HERMES_MAX_ITERATIONS", ge=1)] = 90
    api_max_retries: Annotated[int, key("Attempts for one model call before it counts as failed.", ge=1)] = 3
    reasoning_effort: Annotated[
        Literal["", "none", "minimal", "low", "medium", "high", "xhigh"],
        key("How long a reasoning model thinks; empty leaves it to the model."),
    ] = ""
    reasoning_overrides: Annotated[
        dict[str, Literal["none", "minimal", "low", "medium", "high", "xhigh"]],
        key("The same for single models, by name."),
    ] = field(default_factory=dict)
    local_stream_stale_timeout: Annotated[
        PositiveNumber, key("Seconds without a byte before a request to a server on this machine counts as failed.")
    ] = 1800
    service_tier: Annotated[str, key("Tier asked of the provider, such as `priority`; empty asks for none.")] = ""
    system_prompt: Annotated[
        str, key("Text added to the system prompt of every session.", env="HERMES_EPHEMERAL_SYSTEM_PROMPT")
    ] = ""
    disabled_toolsets: Annotated[tuple[str, ...], key("Toolsets no session gets, whatever else asks for them.")] = ()
    verbose: Annotated[bool, key("Tell more on stderr while a turn runs.")] = False

    @classmethod
    def fold(cls, plain: object) -> object:
        if isinstance(plain, dict) and plain.get("reasoning_effort") is False:
            return {**plain, "reasoning_effort": "none"}  # YAML reads `off` and `no` as false
        return plain
