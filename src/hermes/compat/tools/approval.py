"""`tools.approval`."""

from typing import Any

from hermes.tools import approval
from hermes.tools.approval import __all__  # noqa: F401 - every name of the contract, and no list of them to keep


def __getattr__(name: str) -> Any:
    return getattr(approval, name)
