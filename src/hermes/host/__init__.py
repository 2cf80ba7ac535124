"""What is under every way in: live sessions, the line of their messages, their questions and their commands."""
