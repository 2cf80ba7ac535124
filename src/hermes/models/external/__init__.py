"""Another agent as the model: a program that speaks the Agent Client Protocol on its stdin and stdout."""
