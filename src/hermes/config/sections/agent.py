"""How long and how hard a turn may work."""

from typing import Annotated, Literal

from msgspec import field

from hermes.config.section import PositiveNumber, SectionBase, key


class AnswerLimits(SectionBase, frozen=True):
    """What an answer of a model may come to at most. What goes beyond it is cut off there, and a person is told."""

    max_chars: Annotated[int, key("Characters of text in one answer, and of the arguments of all its calls.", ge=1)] = (
        16_000_000
    )
    max_thinking_chars: Annotated[int, key("Characters of reasoning in one answer.", ge=1)] = 4_000_000
    max_calls: Annotated[int, key("Tool calls in one answer.", ge=1)] = 16_384
    max_arguments_chars: Annotated[int, key("Characters of the arguments of one call.", ge=1)] = 1_000_000
    max_name_chars: Annotated[int, key("Characters of the name of the tool that is called.", ge=1)] = 256
    max_event_bytes: Annotated[
        int, key("Bytes of one event of a stream, and of an answer that is not streamed.", ge=1)
    ] = 16_777_216
    comments_timeout: Annotated[
        PositiveNumber, key("Seconds in which a stream may hold nothing but comments and other signs of life.")
    ] = 1800


class Section(SectionBase, frozen=True):
    """How long and how hard a turn may work."""

    max_turns: Annotated[int, key("Model calls a single turn may make.", env="HERMES_MAX_ITERATIONS", ge=1)] = 90
    turn_timeout: Annotated[float, key("Seconds a turn may take in all; 0 is no limit.", ge=0)] = 21_600
    max_calls_per_message: Annotated[
        int, key("Tool calls of one answer that are run; the model is told that the rest were not.", ge=1, le=1000)
    ] = 128
    clarify_timeout: Annotated[
        float, key("Seconds to wait for the answer to a question of the model; 0 waits as long as the turn may.", ge=0)
    ] = 600
    api_max_retries: Annotated[int, key("Attempts for one model call before it counts as failed.", ge=1)] = 3
    max_retry_after: Annotated[
        float,
        key(
            "Seconds a provider may ask to be left alone. When it asks for more, the next model is asked, or none.",
            ge=0,
        ),
    ] = 600
    answer: Annotated[AnswerLimits, key("What an answer of a model may come to at most.")] = AnswerLimits()
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
    work_mode: Annotated[
        Literal["edits", "ask", "plan"],
        key("Mode that a session begins in: make edits, ask about each, or change nothing and plan."),
    ] = "edits"
    disabled_toolsets: Annotated[tuple[str, ...], key("Toolsets no session gets, whatever else asks for them.")] = ()
    verbose: Annotated[bool, key("Tell more on stderr while a turn runs.")] = False

    @classmethod
    def fold(cls, plain: object) -> object:
        if isinstance(plain, dict) and plain.get("reasoning_effort") is False:
            return {**plain, "reasoning_effort": "none"}  # YAML reads `off` and `no` as false
        return plain
