"""Which model answers, and where it is reached."""

from typing import Annotated

from hermes.config.section import Positive, SectionBase, key


class Section(SectionBase, frozen=True):
    """Which model answers, and where it is reached. A plain text is the same as `default` alone."""

    default: Annotated[
        str, key("Name of the model, as its provider spells it.", env=("HERMES_MODEL", "HERMES_INFERENCE_MODEL"))
    ] = ""
    provider: Annotated[
        str, key("Who serves it; empty or `auto` decides by base_url and keys.", env="HERMES_INFERENCE_PROVIDER")
    ] = ""
    base_url: Annotated[str, key("Address of the API, for a server of your own or a proxy.")] = ""
    api_key: Annotated[str, key("Key for that address. Better kept in .env and written here as `${NAME}`.")] = ""
    api_mode: Annotated[
        str, key("Wire protocol: chat_completions, anthropic_messages, codex_responses, bedrock_converse.")
    ] = ""
    acp_command: Annotated[
        str, key("Program of another agent that is the model, with `provider: acp`; it speaks ACP on stdin and stdout.")
    ] = ""
    acp_args: Annotated[tuple[str, ...], key("What that program is started with.")] = ()
    context_length: Annotated[Positive | None, key("Tokens the model can read; null asks its server and tables.")] = (
        None
    )
    max_tokens: Annotated[Positive | None, key("Tokens the model may write in one answer; null leaves it open.")] = None

    @classmethod
    def fold(cls, plain: object) -> object:
        return {"default": plain} if isinstance(plain, str) else plain
