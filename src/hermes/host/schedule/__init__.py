"""Scheduled jobs at work: the ticker that keeps the time, the runs, and what is delivered."""
