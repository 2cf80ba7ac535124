"""The transport of an endpoint, by its api mode; each is imported when it is first used."""

from hermes.models.endpoint import Endpoint
from hermes.models.transport import HttpModel
from hermes.seams import HttpStream


def make_model(endpoint: Endpoint, http: HttpStream) -> HttpModel:
    """The model at `endpoint`."""
    if endpoint.api_mode == "anthropic_messages":
        from hermes.models.anthropic_messages import anthropic_messages  # noqa: PLC0415

        return anthropic_messages(endpoint, http)
    if endpoint.api_mode == "codex_responses":
        from hermes.models.codex_responses import codex_responses  # noqa: PLC0415

        return codex_responses(endpoint, http)
    if endpoint.api_mode == "bedrock_converse":
        from hermes.models.bedrock_converse import bedrock_converse  # noqa: PLC0415

        return bedrock_converse(endpoint, http)
    from hermes.models.chat_completions import chat_completions  # noqa: PLC0415

    return chat_completions(endpoint, http)
