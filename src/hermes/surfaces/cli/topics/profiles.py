"""Separate homes for separate lives.

A profile has its own settings, secrets, sessions, memory and skills.

  hermes profile create work --clone   make one, with settings and skills of the one in use
  hermes -p work chat -q "…"           use it once
  hermes profile use work              use it from now on
  HERMES_PROFILE=work hermes …         use it in a shell
"""
