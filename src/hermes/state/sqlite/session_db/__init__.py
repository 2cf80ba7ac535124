"""`SessionDB`: the store as plain synchronous calls with dicts, for surfaces, scripts and plugins."""

from hermes.state.sqlite.session_db.gateway import GatewayCalls, HandoffCalls
from hermes.state.sqlite.session_db.ledger import LedgerCalls
from hermes.state.sqlite.session_db.lineage import LineageCalls
from hermes.state.sqlite.session_db.maintenance import MaintenanceCalls
from hermes.state.sqlite.session_db.message_search import SearchCalls
from hermes.state.sqlite.session_db.messages import MessageCalls
from hermes.state.sqlite.session_db.session_lists import ListingCalls
from hermes.state.sqlite.session_db.sessions import SessionCalls
from hermes.state.sqlite.session_db.titles import TitleCalls, sanitize_title
from hermes.state.sqlite.session_db.transfer import TransferCalls

__all__ = ["SessionDB", "sanitize_title"]


class SessionDB(
    SessionCalls,
    MessageCalls,
    TitleCalls,
    LineageCalls,
    ListingCalls,
    SearchCalls,
    TransferCalls,
    MaintenanceCalls,
    HandoffCalls,
    GatewayCalls,
    LedgerCalls,
):
    """Sessions in `db_path` (default `state.db` in the home). Safe from any thread; close it when done.

    Every write is one transaction on the store's writing thread and is durable when the call returns.
    """
