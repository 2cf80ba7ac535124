"""Where settings are, and which one wins.

  hermes config show                   what is set; --all with every key and default
  hermes config set KEY VALUE          comments in the file stay; NAME_LIKE_THIS goes to .env
  hermes config explain KEY            the value, where it comes from, and what it overrode
  hermes config check                  is everything right
  hermes help KEY                      what a key does

Settings are in config.yaml of the home, secrets in .env beside it. The command line
wins over the environment, that over .env, that over config.yaml, and that over the
default. More: docs/configuration.md.
"""
