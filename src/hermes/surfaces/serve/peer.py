"""Who is at the other end of the socket: only the owner of the home, and none of the agent's own commands."""

import os
import socket
import struct

from hermes.tools.supervisor.keeper_descent import descends_from_keeper

_CREDENTIALS = struct.Struct("3i")  # pid, uid, gid


def refusal(connection: socket.socket) -> str:
    """Why this peer is not served; empty when it is."""
    kind = getattr(socket, "SO_PEERCRED", None)
    if kind is None:
        return ""  # the folder of the socket, which only its owner may enter, has to do
    pid, uid, _ = _CREDENTIALS.unpack(connection.getsockopt(socket.SOL_SOCKET, kind, _CREDENTIALS.size))
    if uid != os.getuid():
        return "this server belongs to another user"
    if descends_from_keeper(pid):
        return "commands of the agent are not served here"
    return ""
