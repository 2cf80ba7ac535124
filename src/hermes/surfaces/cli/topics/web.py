"""Searching the web and reading pages.

  hermes config set TAVILY_API_KEY KEY         or of firecrawl, parallel, exa, brave; or SEARXNG_URL
  hermes config set web.search_backend tavily
  hermes config set security.website_blocklist.domains example.com

Addresses of your own network are not fetched unless you name them in web.private_hosts.
More: docs/web.md.
"""
