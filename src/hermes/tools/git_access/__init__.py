"""Git inside the border: credentials stay outside, its settings start nothing, and a push goes where it always went."""
