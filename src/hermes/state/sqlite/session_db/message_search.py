"""Search over messages, in the contract's form."""

from collections.abc import Sequence

from hermes.state.sqlite.search import Search, Sort
from hermes.state.sqlite.search_query import SearchFilter
from hermes.state.sqlite.session_db.base import DbBase, Row

_SORTS: dict[str | None, Sort] = {None: "best", "rank": "best", "best": "best", "newest": "newest", "oldest": "oldest"}


class SearchCalls(DbBase):
    """Calls on the full-text index."""

    def search_messages(  # noqa: PLR0913 - the keywords of the contract
        self,
        query: str,
        source_filter: Sequence[str] | None = None,
        exclude_sources: Sequence[str] | None = None,
        role_filter: Sequence[str] | None = None,
        *,
        limit: int = 20,
        offset: int = 0,
        sort: str | None = None,
        include_inactive: bool = False,
        user_id: str | None = None,
    ) -> list[Row]:
        """Matching messages, best first or by age (`newest`, `oldest`); see docs/sessions.md for what can be asked.

        Rows have id, session_id, role, snippet, timestamp, tool_name, source, model, session_started and context.
        """
        if sort not in _SORTS:
            raise ValueError(f"sort is 'best', 'newest' or 'oldest', not {sort!r}")
        only = SearchFilter(
            sources=tuple(source_filter or ()),
            not_sources=tuple(exclude_sources or ()),
            roles=tuple(role_filter or ()),
            user_id=user_id,
            inactive=include_inactive,
        )
        return self.store.search_sync(Search(text=query, only=only, sort=_SORTS[sort], limit=limit, offset=offset))

    def rebuild_fts(self) -> int:
        """Make the index anew; how many messages it holds."""
        return self.store.rebuild_index()

    def optimize_fts(self) -> int:
        """Index what is waiting and merge the index into one piece; how many messages were waiting."""
        waiting = self.store.index_all()
        self._execute("INSERT INTO messages_fts(messages_fts) VALUES ('optimize')")
        return waiting
