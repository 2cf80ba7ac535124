"""One file per wire protocol, and what they share."""
