"""The agent's keywords as an editor, a type checker and `help` see them."""

import inspect
import pydoc
from typing import get_type_hints

import hermes
from hermes import AIAgent
from hermes.runtime.agent_keywords import AgentKeywords, keyword_help
from hermes.runtime.options import fold


def test_the_typed_keywords_are_those_that_the_agent_takes() -> None:
    assert set(get_type_hints(AgentKeywords)) == set(inspect.signature(AIAgent).parameters)


def test_each_keyword_has_a_sentence() -> None:
    told = keyword_help()
    assert set(told) == set(AgentKeywords.__annotations__)
    assert [name for name, sentence in told.items() if not sentence.endswith(".")] == []


def test_none_is_allowed_for_each() -> None:
    assert [name for name, hint in get_type_hints(AgentKeywords).items() if not _takes_none(hint)] == []
    fold(dict.fromkeys(AgentKeywords.__annotations__))


def _takes_none(hint: object) -> bool:
    return "None" in str(hint) or str(hint) == "typing.Any"


def test_help_shows_an_example_and_every_keyword() -> None:
    shown = pydoc.plain(pydoc.render_doc(AIAgent))
    assert "agent.chat(" in shown
    assert [name for name, told in keyword_help().items() if f"{name}\n |      {told}" not in shown] == []


def test_the_package_shows_the_agent_before_it_is_loaded() -> None:
    assert "AIAgent" in dir(hermes)
