"""A scripted provider on loopback, for tests of anything that talks to a model over HTTP.

Write the script with `hermes.testing.replies`. Asynchronous tests use `ScriptedServer`, others `ServerThread`, and a
program under test can have one beside it: `python -m hermes.testing.server --script FILE`.
"""

from hermes.testing.server.core import Script, ScriptedServer, ServerThread
from hermes.testing.server.exchange import Exchange, RecordedRequest
from hermes.testing.server.faults import FAULTS, Failing

__all__ = ["FAULTS", "Exchange", "Failing", "RecordedRequest", "Script", "ScriptedServer", "ServerThread"]
