"""The subcommands of `hermes`, one file each, holding it as `COMMAND`: add a file to add a command."""
