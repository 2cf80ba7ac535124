"""The store in one SQLite file: all that knows sqlite3, its files and its SQL is in this folder."""
