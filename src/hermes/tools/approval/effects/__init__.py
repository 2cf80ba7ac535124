"""Rules for single programs, by what they touch."""
