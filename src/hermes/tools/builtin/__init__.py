"""The built-in tools: one tool, or one family, per file; each registers itself when it is imported."""
