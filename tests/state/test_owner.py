"""Whether a process is still there: certain only about those of this machine, this boot and these pids."""

import os
import subprocess
import sys

from hermes.state import owner


def test_this_process_is_alive_and_one_with_its_pid_and_another_start_is_not() -> None:
    mine = owner.this_process()
    place, pid, start = mine.split(":")
    assert (pid, owner.may_be_alive(mine)) == (str(os.getpid()), True)
    assert not owner.may_be_alive(f"{place}:{pid}:{int(start) + 1}")
    assert not owner.may_be_alive(f"{place}:999999999:1")


def test_nothing_is_known_about_a_process_elsewhere() -> None:
    place = owner.this_process().split(":")[0]
    host, boot, pids = place.split("/")
    for elsewhere in (f"other/{boot}/{pids}", f"{host}/00000000/{pids}", f"{host}/{boot}/1", "other"):
        assert owner.may_be_alive(f"{elsewhere}:999999999:1")


def test_an_owner_that_an_earlier_version_wrote_is_judged_by_the_name_of_the_machine() -> None:
    host, mine = os.uname().nodename, owner.this_process()
    assert owner.may_be_alive(f"{host}:{os.getpid()}:{mine.split(':')[2]}")
    assert not owner.may_be_alive(f"{host}:999999999:1")


def test_a_killed_process_that_nobody_has_waited_for_is_gone() -> None:
    code = "from hermes.state import owner; print(owner.this_process(), flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    ) as child:
        assert child.stdout is not None
        told = child.stdout.readline().strip()
        assert owner.may_be_alive(told)
        assert owner.described(told) == f"pid {child.pid}"
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # it has ended, and still has an entry
        assert not owner.may_be_alive(told)
