"""Services that search the web."""

from hermes.config.env_vars import EnvVar

VARIABLES = (
    EnvVar("BRAVE_SEARCH_API_KEY", "web search through Brave", "https://brave.com/search/api/"),
    EnvVar("EXA_API_KEY", "web search through Exa", "https://exa.ai"),
    EnvVar("FIRECRAWL_API_KEY", "web search through Firecrawl", "https://firecrawl.dev"),
    EnvVar("PARALLEL_API_KEY", "web search through Parallel", "https://parallel.ai"),
    EnvVar("TAVILY_API_KEY", "web search through Tavily", "https://tavily.com"),
    EnvVar("SEARXNG_URL", "web search through a SearXNG of your own", is_secret=False),
)
