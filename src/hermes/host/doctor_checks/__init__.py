"""The checks of `hermes doctor`, one file each, holding it as `CHECK`: add a file to add a check."""
