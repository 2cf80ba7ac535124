"""Whether commits are quick enough for an event loop, judged by how long they took."""

QUICK_S = 0.002  # commits that take less may run on an event loop: a person who types does not feel them
SLOWEST_S = 2 * QUICK_S  # what the slowest one counts: a single hiccup of a quick disk is none of its habits
_WEIGHT = 0.25


def pace(estimate_s: float, took_s: float, *, by_thread: bool) -> float:
    """The estimate after one more commit.

    The writing thread waits for the disk, and then for the interpreter, which a busy loop lets go only every 5 ms. So
    its commits are a bound: they can show that the disk is quicker than was thought, never that it is slower.
    """
    if by_thread and took_s >= estimate_s:
        return estimate_s
    return (1 - _WEIGHT) * estimate_s + _WEIGHT * min(took_s, SLOWEST_S)
