"""What a script learns from `hermes` without reading its words."""

from enum import IntEnum


class Exit(IntEnum):
    """Exit codes; each means one thing. They are part of the public contract, see `hermes help exit-codes`."""

    ANSWERED = 0
    FAILED = 1  # something a person must change: a setting, a file, a name, a full disk
    USAGE = 2  # the command line itself could not be understood
    EMPTY = 3  # the model ended without saying anything
    REFUSED = 4  # the provider or the model declined to answer
    BUDGET = 5  # a limit on calls, money, tokens or time was reached first
    PROVIDER = 6  # the model could not be reached, or failed
    TOOL = 7  # the turn was stopped because tools kept failing
    IN_USE = 8  # another process works on the session
    MISFIT = 9  # the answer does not fit --output-schema
    INTERNAL = 70  # a fault in Hermes
    CANCELLED = 130  # Ctrl-C, or a signal to stop
    BROKEN_PIPE = 141  # whoever read the output went away
