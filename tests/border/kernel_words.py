"""Words that attacks on the kernel share."""

from tests.border.record import Attack, Call, Family, Strike

VICTIM = "$(cat ~/victim.pid)"  # the number of a program of the person's
# Python that can make any system call, and knows that number.
SYSCALL = (
    "import ctypes, os\nl = ctypes.CDLL(None, use_errno=True)\nl.syscall.restype = ctypes.c_long\np ="
    " int(open('/home/me/victim.pid').read())\n"
)


def attack_of(
    family: Family, name: str, *steps: Call | Strike, says: str = "", still: str = "", as_: str = "anybody"
) -> Attack:
    return Attack(name=name, family=family, steps=steps, says=says, still=still, as_=as_)  # type: ignore[arg-type]  # checked by use
