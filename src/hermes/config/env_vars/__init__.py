"""Variables that switch optional things on, for `hermes setup`: one module per capability, holding `VARIABLES`."""

from msgspec import Struct

from hermes.tables import Table


class EnvVar(Struct, frozen=True):
    """One variable: what it is for, and where to get it."""

    name: str
    purpose: str
    url: str = ""
    is_secret: bool = True


OPTIONAL_ENV_VARS: Table[tuple[EnvVar, ...]] = Table(__name__, "VARIABLES")


def optional_env_vars() -> dict[str, EnvVar]:
    """Every variable of the table by name, in the order of the modules."""
    return {one.name: one for module in OPTIONAL_ENV_VARS.names() for one in OPTIONAL_ENV_VARS.load(module)}
