"""Where a model is served, and what is peculiar about serving it there."""

from typing import Literal, TypeAlias

from msgspec import Struct, field

from hermes.config.sections.agent import AnswerLimits
from hermes.seams import DEFAULT_LIMITS, HttpLimits
from hermes.types import JsonObject

ApiMode: TypeAlias = Literal["chat_completions", "anthropic_messages", "codex_responses", "bedrock_converse"]
OutputFormat: TypeAlias = Literal["beside_tools", "alone", "none"]
ReasoningStyle: TypeAlias = Literal["effort", "object", "thinking", "none"]


class Quirks(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a provider departs from its protocol. Data: each is a field of the catalogue."""

    replay_reasoning: bool = False  # wants `reasoning_content` back on assistant turns
    replay_details: bool = False  # wants `reasoning_details` back as they came
    system_role: str = "system"
    max_tokens_field: str = "max_tokens"
    include_usage: bool = True  # understands `stream_options.include_usage`
    reasoning: ReasoningStyle = "effort"  # `reasoning_effort`, `reasoning: {…}`, `thinking: {type}`, or no field
    is_aggregator: bool = False  # routes to other providers and takes a `provider` object
    cache_markers: bool = False
    cache_ttl: Literal["5m", "1h"] = "5m"
    keeps_thinking: bool = True  # takes signed thinking back (Anthropic's own endpoints)
    output_format: OutputFormat = "alone"  # whether it holds answers to a schema, also where tools are on offer
    text_calls: bool = False  # its model writes calls as text; found by a probe, never assumed


class Endpoint(Struct, frozen=True, kw_only=True):
    """One model at one address, with the key for it."""

    base_url: str
    model: str
    provider: str = "custom"
    api_mode: ApiMode = "chat_completions"
    api_key: str = ""  # set by `credentials.with_key` alone
    withheld: str = ""  # a sentence about a key that was found and does not belong here
    headers: dict[str, str] = field(default_factory=dict)
    extra_body: JsonObject = field(default_factory=dict)  # of the provider's entry; the request's own win over it
    limits: HttpLimits = DEFAULT_LIMITS
    answer: AnswerLimits = AnswerLimits()
    timeout_s: float | None = None  # of one request in all; None is the client's own
    quirks: Quirks = Quirks()
    max_tokens: int | None = None  # what a request asks for at most, unless it says otherwise
    max_output: int | None = None  # what the model can write at most, where that is known
    context_length: int | None = None
    asks_window: bool = False  # nobody has set it, and the server may know better than our tables
    region: str = ""  # Bedrock
    profile: str = ""  # Bedrock: the AWS profile
    is_aws: bool = False  # Bedrock: the address is one that AWS credentials may sign requests for
