"""What people add to Hermes without writing a tool: skills and hooks."""
