"""What was spent, and how to cap it.

  hermes usage                         calls, tokens and price of the last 30 days; --by day, model, session
  hermes config set spending.day_usd 5         the most that all sessions of a day may cost
  hermes config set spending.turn_tokens 200000

Caps hold before a call is made, helpers included; a turn that reaches one ends with
exit code 5. A price that nobody knows is told as unknown, never as nothing; set your
own under providers.NAME.prices.
"""
