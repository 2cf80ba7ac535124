"""Test your own tools and agents without a model: scripted models and servers, fakes of the seams.

    model = ScriptedModel(calls("count_words", text="a b"), says("Two words."))
    assert AIAgent(model=model).chat("How many?") == "Two words."
    model.assert_finished()

`hermes.testing.server` speaks the wire protocols, for tests of anything that talks HTTP to a model. With pytest, the
fixtures of `hermes.testing.pytest_plugin` are there as soon as Hermes is installed.
"""

from hermes.testing.model import ScriptedModel
from hermes.testing.replies import Reply, calls, calls_with, fault, load_script, says, thinks

__all__ = ["Reply", "ScriptedModel", "calls", "calls_with", "fault", "load_script", "says", "thinks"]
