"""The keys that stand by themselves at the top of the file."""

from typing import Annotated, Any, Literal

from msgspec import field

from hermes.config.section import Amount, Positive, PositiveNumber, SectionBase, key


class ModelPrice(SectionBase, frozen=True):
    """US dollars per million tokens."""

    input: Annotated[float, key("For tokens that are read.", ge=0)] = 0.0
    output: Annotated[float, key("For tokens that are written.", ge=0)] = 0.0
    cache_read: Annotated[Amount | None, key("For tokens read from the provider's cache.")] = None
    cache_write: Annotated[Amount | None, key("For tokens written to it.")] = None


class ProviderModel(SectionBase, frozen=True):
    """What is different about one model of a provider."""

    context_length: Annotated[Positive | None, key("Tokens it can read.")] = None
    max_tokens: Annotated[Positive | None, key("Tokens it may write.")] = None
    stale_timeout_seconds: Annotated[PositiveNumber | None, key("As the provider's own, for this model.")] = None
    request_timeout_seconds: Annotated[PositiveNumber | None, key("As the provider's own, for this model.")] = None

    @classmethod
    def fold(cls, plain: object) -> object:
        return {} if plain is None else plain


class Provider(SectionBase, frozen=True):
    """A server of your own, or an address of a known provider that is not the usual one."""

    name: Annotated[str, key("What `model.provider` calls it; in `providers` the name is the key.")] = ""
    base_url: Annotated[str, key("Address of its API.")] = ""
    api_key: Annotated[str, key("Its key. Better kept in .env and named in `key_env`.")] = ""
    key_env: Annotated[str, key("Variable that holds its key.")] = ""
    api_mode: Annotated[str, key("Wire protocol; empty decides by the address.")] = ""
    model: Annotated[str, key("Its model when none is named.")] = ""
    models: Annotated[
        tuple[str, ...] | dict[str, ProviderModel],
        key("Its models, for pickers and completion; as a mapping, with what is different about each."),
    ] = ()
    context_length: Annotated[Positive | None, key("Tokens its models can read.")] = None
    max_tokens: Annotated[Positive | None, key("Tokens its models may write.")] = None
    headers: Annotated[dict[str, str], key("Headers added to each request.")] = field(default_factory=dict)
    stale_timeout_seconds: Annotated[
        PositiveNumber | None, key("Seconds without a byte before a request counts as failed.")
    ] = None
    request_timeout_seconds: Annotated[PositiveNumber | None, key("Seconds one request may take in all.")] = None
    prices: Annotated[dict[str, ModelPrice], key("Prices by model, where they are not known or not yours.")] = field(
        default_factory=dict
    )
    extra_body: Annotated[dict[str, Any], key("Fields added to each request.")] = field(default_factory=dict)


class Fallback(SectionBase, frozen=True):
    """A model that takes over when the one before it fails."""

    provider: Annotated[str, key("Who serves it.")] = ""
    model: Annotated[str, key("Name of the model.")] = ""
    base_url: Annotated[str, key("Address, when it is not the provider's usual one.")] = ""
    api_key: Annotated[str, key("Key for that address.")] = ""
    key_env: Annotated[str, key("Variable that holds the key.")] = ""
    api_mode: Annotated[str, key("Wire protocol; empty decides by the address.")] = ""


class QuickCommand(SectionBase, frozen=True):
    """A slash command of your own."""

    type: Annotated[Literal["exec", "alias"], key("Run a shell command, or stand for another slash command.")] = "exec"
    command: Annotated[str, key("What `exec` runs.")] = ""
    target: Annotated[str, key("What `alias` stands for.")] = ""


class PlatformHint(SectionBase, frozen=True):
    """What the model is told about one way in; a plain text is appended to what it is told anyway."""

    append: Annotated[str, key("Words after those it is told anyway.")] = ""
    replace: Annotated[str | None, key("Words in their place; empty tells nothing.")] = None

    @classmethod
    def fold(cls, plain: object) -> object:
        return {"append": plain} if isinstance(plain, str) else plain


class Section(SectionBase, frozen=True):
    """The keys that stand by themselves at the top of the file."""

    toolsets: Annotated[tuple[str, ...], key("Toolsets a session gets.")] = ("hermes-cli",)
    platform_toolsets: Annotated[dict[str, tuple[str, ...]], key("The same for one way in: cli, cron, acp.")] = field(
        default_factory=dict
    )
    providers: Annotated[dict[str, Provider], key("Servers of your own, by name.")] = field(default_factory=dict)
    custom_providers: Annotated[tuple[Provider, ...], key("The same as a list, each with its `name`.")] = ()
    fallback_providers: Annotated[
        tuple[Fallback, ...], key("Models that take over, in this order, when the first fails.")
    ] = ()
    fallback_model: Annotated[Fallback, key("The older form of `fallback_providers`, for a single one.")] = Fallback()
    credential_pool_strategies: Annotated[
        dict[str, Literal["fill_first", "round_robin", "random", "least_used"]],
        key("Which of several keys of a provider is used, by provider."),
    ] = field(default_factory=dict)
    command_allowlist: Annotated[tuple[str, ...], key("Commands approved for good, as rule names or exact texts.")] = ()
    hooks_auto_accept: Annotated[
        bool, key("Run the programs of `hooks` without asking for consent.", env="HERMES_ACCEPT_HOOKS")
    ] = False
    quick_commands: Annotated[dict[str, QuickCommand], key("Slash commands of your own.")] = field(default_factory=dict)
    timezone: Annotated[
        str,
        key(
            "Time zone the model is told, such as Europe/Berlin; empty is the machine's.",
            env="HERMES_TIMEZONE",
        ),
    ] = ""
    prefill_messages_file: Annotated[
        str,
        key(
            "JSON file of messages put before every conversation; a relative name is in the home.",
            env="HERMES_PREFILL_MESSAGES_FILE",
        ),
    ] = ""
    max_concurrent_sessions: Annotated[
        Positive | None, key("Turns that one process runs at once; further ones wait for their turn. null: no limit.")
    ] = 64
    context_file_max_chars: Annotated[
        Positive | None,
        key("Characters of a project's rules that a session takes in; unset, 20000 or 6 % of the model's window."),
    ] = None
    platform_hints: Annotated[
        dict[str, PlatformHint], key("What the model is told about a way in (cli, cron, …), by its name.")
    ] = field(default_factory=dict)
    file_read_max_chars: Annotated[int, key("Characters of a file the model may read at once.", ge=1)] = 100_000
    mcp_servers: Annotated[
        dict[str, Any], key("Servers of tools, by name; see: hermes mcp.", values="hermes.config.mcp_server.McpServer")
    ] = field(default_factory=dict)
    mcp_discovery_timeout: Annotated[
        float, key("Seconds that the first request of a session waits for MCP servers never seen before.", ge=0)
    ] = 1.5
