"""Choosing the model, and what happens when it cannot answer.

  hermes model                         choose one step by step; the key is tried before it is written down
  hermes chat -m NAME --provider P     another one, this time only
  hermes fallback add                  a model that takes over when the first fails
  hermes doctor model --online         is the key right, does it answer
  hermes config set agent.reasoning_effort high

A server of your own: hermes model NAME --provider custom --base-url
http://127.0.0.1:8000/v1. Keys are kept in .env, which only you can read. A key goes to
its own provider, or to the address it was written beside, and nowhere else.
More: docs/models.md.
"""
