"""Editors: the Agent Client Protocol on stdin and stdout, a thin map onto the host."""
