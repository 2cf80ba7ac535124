"""Which service searches the web, and how pages are fetched."""

from typing import Annotated, Literal

from msgspec import field

from hermes.config.section import SectionBase, key


class CustomSearch(SectionBase, frozen=True):
    """A search service of your own: one HTTP request with JSON as its answer."""

    url: Annotated[str, key("Its address; `{query}` and `{limit}` in it are filled in. Empty: there is none.")] = ""
    method: Annotated[Literal["GET", "POST"], key("How it is asked.")] = "GET"
    headers: Annotated[dict[str, str], key("Headers to send, such as a key.")] = field(default_factory=dict)
    body: Annotated[dict[str, str], key("JSON to send with POST; `{query}` and `{limit}` are filled in.")] = field(
        default_factory=dict
    )
    results: Annotated[str, key("Where the list of results is in the answer, such as `data.items`.")] = "results"
    title: Annotated[str, key("The field with a result's title.")] = "title"
    link: Annotated[str, key("The field with its address.")] = "url"
    description: Annotated[str, key("The field with its description.")] = "description"


class Section(SectionBase, frozen=True):
    """Which service searches the web, and how pages are fetched. Empty takes the first service that has a key."""

    backend: Annotated[str, key("Search service, when search_backend is empty.")] = ""
    search_backend: Annotated[
        str, key("Search service: firecrawl, parallel, tavily, exa, searxng, brave, ddgs or custom.")
    ] = ""
    extract_backend: Annotated[
        str,
        key("Who fetches pages: `local` (or empty) is this runtime itself; else firecrawl, parallel, tavily or exa."),
    ] = ""
    extract_char_limit: Annotated[int, key("Characters of a page the model is shown.", ge=2000)] = 15_000
    extract_timeout_s: Annotated[float, key("Seconds for one page, redirects included.", gt=0)] = 30
    extract_max_mb: Annotated[float, key("Size of a page, unpacked, MB; a larger one is not read.", gt=0)] = 10
    private_hosts: Annotated[
        tuple[str, ...],
        key("Hosts, `host:port` or networks of your own that pages may be fetched from, beside the public ones."),
    ] = ()
    endpoints: Annotated[dict[str, str], key("Other addresses for services by name, such as a proxy of yours.")] = (
        field(default_factory=dict)
    )
    custom: Annotated[CustomSearch, key("A search service of your own.")] = CustomSearch()
    firecrawl_api_key: Annotated[str, key("Key of Firecrawl.", env="FIRECRAWL_API_KEY")] = ""
    firecrawl_url: Annotated[str, key("Address of your own Firecrawl.", env="FIRECRAWL_API_URL")] = ""
    parallel_api_key: Annotated[str, key("Key of Parallel.", env="PARALLEL_API_KEY")] = ""
    tavily_api_key: Annotated[str, key("Key of Tavily.", env="TAVILY_API_KEY")] = ""
    exa_api_key: Annotated[str, key("Key of Exa.", env="EXA_API_KEY")] = ""
    searxng_url: Annotated[str, key("Address of your SearXNG.", env="SEARXNG_URL")] = ""
    brave_api_key: Annotated[str, key("Key of Brave Search.", env="BRAVE_SEARCH_API_KEY")] = ""
