"""The tables of the judgement say what the code knows."""

from hermes.tools.approval.effects_model import keys
from hermes.tools.approval.tables import rows


def test_every_rule_about_a_program_names_an_effect_that_there_is() -> None:
    named = {row.split(": ", 1)[0].rstrip("!") for row in rows("tools.txt")}
    assert named - keys().keys() == {"prints"}
