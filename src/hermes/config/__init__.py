"""Configuration: where the home is, what its config.yaml and .env say, and where each setting came from."""
