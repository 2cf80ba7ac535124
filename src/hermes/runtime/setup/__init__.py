"""How an agent is put together from its keywords and the settings."""
