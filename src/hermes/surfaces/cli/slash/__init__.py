"""The slash commands, one file each; see `hermes.surfaces.cli.interactive.slashes`."""
