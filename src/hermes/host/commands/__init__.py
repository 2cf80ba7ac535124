"""The slash commands, one file each; see `hermes.host.command`."""
