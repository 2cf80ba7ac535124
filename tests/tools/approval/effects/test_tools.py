"""The table of rules about programs."""

from hermes.tools.approval.effects.tools import rules
from hermes.tools.approval.effects_model import KEYS


def test_every_rule_names_an_effect_that_there_is() -> None:
    named = {rule.kind for found in rules().values() for rule in found}
    assert named - KEYS.keys() <= {"prints"}
