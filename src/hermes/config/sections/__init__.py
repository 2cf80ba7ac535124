"""The sections of config.yaml, one file each: add a file to add a section."""
