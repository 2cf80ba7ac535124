"""When something does not work.

  hermes doctor                        looks at everything; ends with the commands to run, --fix runs the safe
  hermes doctor --online               asks the provider as well
  hermes logs errors --since 1h        what went wrong; -f goes on, --session ID of one, --json
  hermes chat -q "…" -v                what is done, while it is done
  HERMES_DEBUG=1 hermes …              the traceback, when Hermes itself fails
  hermes sessions repair               when sessions cannot be read

Secrets are taken out of logs. Exit codes: hermes help exit-codes.
"""
