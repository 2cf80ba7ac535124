"""Where commands run.

  hermes config set terminal.backend docker    local, ssh, docker, singularity, modal or daytona
  hermes config set terminal.sandbox on        refuse to run local commands outside bubblewrap
  hermes config set terminal.env_passthrough GITHUB_TOKEN
  hermes doctor terminal                       does it work here

A session starts in the folder you started Hermes in, and stays where its last `cd` led.
Commands do not see variables that look like secrets, unless you name them. More:
docs/environments.md.
"""
