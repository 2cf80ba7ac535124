"""What the model may do: the registry of tools, the gate before them, and the built-in ones."""
