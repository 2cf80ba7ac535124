"""What the agent's programs may touch: one policy per session, as plain data. Who enforces it is not known here."""
