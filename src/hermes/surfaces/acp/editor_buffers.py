"""What an editor holds of a file and has not saved: `fs/read_text_file`, where the editor offers it."""

import logging

from hermes.host.wire.frames import WireError
from hermes.surfaces.acp.connection import EditorConnection, EditorGone

LIMIT_S = 5.0
log = logging.getLogger(__name__)


class EditorBuffers:
    """`OpenBuffers` of one session. An editor that cannot say leaves the file as it is on disk."""

    def __init__(self, connection: EditorConnection) -> None:
        self._connection = connection
        self.acp_id = ""  # known when the session is open
        self._is_told = False

    async def text(self, path: str) -> str | None:
        if not self.acp_id:
            return None
        asked = {"sessionId": self.acp_id, "path": path}
        try:
            found = await self._connection.ask("fs/read_text_file", asked, LIMIT_S)
        except (WireError, EditorGone, TimeoutError) as error:
            log.info("the editor does not show %r: %s", path, str(error) or type(error).__name__)
            return None
        text = found.get("content") if isinstance(found, dict) else None
        if isinstance(text, str) and not self._is_told:
            self._is_told = True
            log.warning("files are read from the editor, with what is not saved yet; they are written on disk")
        return text if isinstance(text, str) else None
