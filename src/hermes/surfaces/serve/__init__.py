"""`hermes serve`: the host as a process, for clients that speak JSON-RPC lines."""
