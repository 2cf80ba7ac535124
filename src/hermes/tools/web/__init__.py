"""The web for tools: searching through a service, and fetching pages from addresses that may be reached."""
