"""One session of the store: read, kept, compressed, moved."""
