"""Which rule of a confinement decides about a path, in whatever case its name is spelled."""

from hermes.confinement.policy import Confinement, PathRule, is_below


def deciding_rule(confinement: Confinement, path: str) -> PathRule | None:
    """The rule for a real path. On some file systems case makes no difference, so it makes none for what is guarded."""
    found = confinement.rule_for(path)
    folded = path.casefold()
    for rule in confinement.of_kind("protected", "self-running", "git-config", "secret", "hermes"):
        if is_below(folded, rule.path.casefold()) and (found is None or len(rule.path) > len(found.path)):
            found = rule
    return found
