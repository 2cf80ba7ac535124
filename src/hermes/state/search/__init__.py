"""Search over all transcripts: words and CJK bigrams, never stale."""
