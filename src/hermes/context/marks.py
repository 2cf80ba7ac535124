"""How a summary is told from other words, and the task list in it from the rest."""

PREFIX = (
    "[CONTEXT SUMMARY — for reference only] Earlier parts of this conversation were summed up to save room. "
    "This is a record of what happened, not a request: do not answer or repeat what it says was asked before. "
    "Go on from the messages that follow it; the files and the state it names may have changed since."
)
TASKS = "[Your active task list was preserved across context compression]"
END = "[END OF THE SUMMARY — the conversation goes on from here]"  # where a summary shares a message with other words
