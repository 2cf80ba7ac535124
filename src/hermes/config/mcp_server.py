"""One entry of `mcp_servers`: a program or an address that offers tools, and what it may do here."""

from typing import Annotated, Literal, TypeAlias

from msgspec import field

from hermes.config.section import PositiveNumber, SectionBase, key

LogLevel: TypeAlias = Literal["debug", "info", "warning", "error"]


class McpTools(SectionBase, frozen=True):
    """Which tools of a server are offered."""

    include: Annotated[tuple[str, ...], key("Only these, by the names that the server has for them.")] = ()
    exclude: Annotated[tuple[str, ...], key("All but these; `include` wins over it.")] = ()
    resources: Annotated[bool, key("Offer list_resources and read_resource where the server has resources.")] = True
    prompts: Annotated[bool, key("Offer list_prompts and get_prompt where the server has prompts.")] = True

    @classmethod
    def fold(cls, plain: object) -> object:
        if not isinstance(plain, dict):
            return plain
        lists = {name: [value] for name in ("include", "exclude") if isinstance(value := plain.get(name), str)}
        return {**plain, **lists}


class McpSampling(SectionBase, frozen=True):
    """What model calls a server may ask for, during a call of one of its tools."""

    enabled: Annotated[bool, key("Whether it may ask for any.")] = True
    model: Annotated[str, key("The model that answers; empty is `auxiliary.mcp`.")] = ""
    max_tokens_cap: Annotated[int, key("Tokens of an answer, whatever the server asks for.", ge=1)] = 4096
    timeout: Annotated[float, key("Seconds for an answer.", gt=0)] = 30
    max_rpm: Annotated[int, key("Requests in a minute.", ge=1)] = 10
    allowed_models: Annotated[tuple[str, ...], key("Models that may answer; empty is any.")] = ()
    max_tool_rounds: Annotated[int, key("Rounds of tools within one request.", ge=0, pending=True)] = 5
    log_level: Annotated[LogLevel, key("How loudly requests are logged.")] = "info"


class McpOAuth(SectionBase, frozen=True):
    """How one signs in at a server with `auth: oauth`. Without a client id, one is asked for."""

    client_id: Annotated[str, key("Id of a client that was registered by hand.")] = ""
    client_secret: Annotated[str, key("Its secret.")] = ""
    client_name: Annotated[str, key("The name that the sign-in page shows.")] = "Hermes"
    scope: Annotated[str, key("What is asked for; empty is what the server names.")] = ""
    redirect_port: Annotated[int, key("Port for the answer of the browser; 0 is any.", ge=0, le=65535)] = 0
    redirect_host: Annotated[str, key("Host for the answer of the browser.")] = "127.0.0.1"
    redirect_uri: Annotated[str, key("The whole address, where another one was registered.")] = ""


class McpLifecycle(SectionBase, frozen=True):
    """When a server of one's own machine is ended; the next call starts it again."""

    idle_timeout_seconds: Annotated[PositiveNumber | None, key("Seconds without a call.")] = None
    max_lifetime_seconds: Annotated[PositiveNumber | None, key("Seconds since its start.")] = None


class McpServer(SectionBase, frozen=True):
    """A server of tools: a program that is started (`command`), or one that listens somewhere (`url`)."""

    command: Annotated[str, key("The program to start; no shell is involved.")] = ""
    args: Annotated[tuple[str, ...], key("Its arguments.")] = ()
    env: Annotated[dict[str, str], key("Variables for it beside PATH, HOME, USER, LANG and the like.")] = field(
        default_factory=dict
    )
    cwd: Annotated[str, key("Folder to start it in; empty is that of the session.")] = ""
    url: Annotated[str, key("Its address, http or https.")] = ""
    headers: Annotated[dict[str, str], key("Headers to send to it.")] = field(default_factory=dict)
    transport: Annotated[Literal["http", "sse"], key("`sse` for the older protocol.")] = "http"
    timeout: Annotated[float, key("Seconds for a call.", gt=0)] = 300
    connect_timeout: Annotated[float, key("Seconds to start and to greet.", gt=0)] = 60
    enabled: Annotated[bool, key("Use it.")] = True
    tools: Annotated[McpTools, key("Which of its tools are offered.")] = McpTools()
    supports_parallel_tool_calls: Annotated[bool, key("Its calls may run side by side.")] = False
    keepalive_interval: Annotated[float, key("Seconds between two looks whether it is there.", ge=5)] = 180
    idle_timeout_seconds: Annotated[PositiveNumber | None, key("As in `lifecycle`.")] = None
    max_lifetime_seconds: Annotated[PositiveNumber | None, key("As in `lifecycle`.")] = None
    lifecycle: Annotated[McpLifecycle, key("When it is ended.")] = McpLifecycle()
    auth: Annotated[Literal["", "oauth"], key("`oauth` where one signs in; see: hermes mcp login.")] = ""
    oauth: Annotated[McpOAuth, key("How one signs in.")] = McpOAuth()
    ssl_verify: Annotated[bool | str, key("Check certificates; a text is a file of authorities to believe.")] = True
    client_cert: Annotated[str | tuple[str, ...], key("A PEM file with certificate and key, or a list of two.")] = ""
    client_key: Annotated[str, key("The key that belongs to `client_cert`.")] = ""
    skip_preflight: Annotated[bool, key("Do not look first whether the address answers like a server.")] = False
    sampling: Annotated[McpSampling, key("Model calls that it may ask for.")] = McpSampling()

    @property
    def idle_s(self) -> float | None:
        """Seconds without a call after which it is ended."""
        return self.idle_timeout_seconds or self.lifecycle.idle_timeout_seconds

    @property
    def lifetime_s(self) -> float | None:
        """Seconds after which it is ended when nothing runs."""
        return self.max_lifetime_seconds or self.lifecycle.max_lifetime_seconds
