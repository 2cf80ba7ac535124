"""What a test of one kind of store knows about the store that a `SessionDB` stands on."""

from hermes.state import SessionDB, SqliteStore


def sqlite_of(db: SessionDB) -> SqliteStore:
    assert isinstance(db.store, SqliteStore)
    return db.store
