"""The network of a session's programs: every connection comes to the runtime with the name it was meant for."""
