"""`tools`, as files written for Hermes Agent import it."""
