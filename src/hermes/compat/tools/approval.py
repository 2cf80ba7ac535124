"""`tools.approval`."""

from hermes.tools.approval import *  # noqa: F403 - every name of the contract, and no list of them to keep
from hermes.tools.approval import __all__  # noqa: F401 - what the star stands for
