"""The keeper: a small program beside the runtime that starts its children and sees to their end.

It runs alone on the standard library (`python -I -S`), so nothing in here imports the rest of the runtime,
but the redactor, which needs nothing else.
"""
