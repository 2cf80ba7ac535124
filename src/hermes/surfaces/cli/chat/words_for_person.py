"""What a person at a terminal sees of `hermes chat -q`: the last exchanges, and the answer as Markdown."""

from hermes.host.session_select import open_sessions
from hermes.host.session_text import last_messages, said
from hermes.surfaces.cli.context import Cli
from hermes.surfaces.cli.interactive.markdown_blocks import Blocks
from hermes.surfaces.cli.interactive.markup import Painter
from hermes.surfaces.cli.interactive.theme import told_theme
from hermes.surfaces.cli.output import cut

REMINDED = 2  # exchanges shown when a session goes on


def remind(cli: Cli, session_id: str) -> None:
    """Show what was said last in a session that goes on."""
    with open_sessions(cli) as db:
        assert db is not None
        title = db.get_session_title(session_id) or session_id
        cli.out.note(f"{title}, {db.message_count(session_id)} messages")
        for row in (each for each in last_messages(db, session_id, REMINDED) if said(each).strip()):
            mark = "> " if row["role"] == "user" else "  "
            cli.out.note(cut(f"{mark}{' '.join(said(row).split())}", cli.out.width))


def drawn(cli: Cli, text: str) -> str:
    """The answer as Markdown, broken between words, for the terminal that it goes to."""
    painter, blocks = Painter(cli.out), Blocks()
    painter.theme = told_theme(cli.environ) or "dark"
    return painter.gap.join(painter.block(block) for block in [*blocks.feed(text), *blocks.finish()])
