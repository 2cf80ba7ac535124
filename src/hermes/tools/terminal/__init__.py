"""The pure parts of the terminal tools: reading a command line, wording its result. Nothing here starts anything."""
