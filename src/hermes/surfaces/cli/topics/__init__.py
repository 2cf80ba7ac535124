"""The topics of `hermes help`, one file each; its docstring is what is shown."""
