"""What the kernel refuses a confined program, at each level that works here."""

import ctypes
import os
import shlex
import socket
import sys
from pathlib import Path

import pytest

from hermes.seams import Decision, SpawnSpec
from hermes.tools.environments.local import LocalEnvironment
from hermes.tools.supervisor.confine import bubblewrap
from hermes.tools.supervisor.confine.probe import Wish
from hermes.tools.supervisor.confine.system_calls import MACHINES, SocketRules, filter_program
from hermes.tools.supervisor.keeper.start import in_memory_file, out_of_the_way
from hermes.tools.supervisor.supervisor import ProcessSupervisor
from tests.tools.environments.conformance import run

pytestmark = pytest.mark.real

# Each line of output is a name and the error number that the call came to, 0 for none.
CALLS = """
import ctypes, fcntl, os, socket
libc = ctypes.CDLL(None, use_errno=True)
def tell(name, act):
    try:
        act()
    except OSError as error:
        print(name, error.errno)
    else:
        print(name, 0)
def raw(*words):
    if libc.syscall(*words) < 0:
        raise OSError(ctypes.get_errno(), "refused")
open("f", "w").close()
tell("unshare", lambda: raw(272, 0x10000000))
tell("clone3", lambda: raw(435, 0, 0))
tell("keyring", lambda: raw(250, 0, -3, 0))
tell("mount", lambda: raw(165, b"x", b"/mnt", b"tmpfs", 0, 0))
tell("setuid", lambda: os.chmod("f", 0o4755))
tell("setgid", lambda: os.chmod("f", 0o2755))
tell("born setuid", lambda: os.close(os.open("g", os.O_CREAT | os.O_WRONLY, 0o4755)))
tell("plain mode", lambda: os.chmod("f", 0o755))
tell("opened", lambda: os.close(os.open("f", os.O_RDONLY, 0o7777)))
tell("vsock", lambda: socket.socket(40, socket.SOCK_STREAM))
tell("typed", lambda: fcntl.ioctl(0, 0x5412, b"x"))
tell("pair", lambda: socket.socketpair())
tell("datagrams", lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM))
tell("unix", lambda: socket.socket(socket.AF_UNIX))
tell("inet", lambda: socket.socket(socket.AF_INET))
"""


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the numbers are those of x86_64")
async def test_system_calls_that_lead_out_are_refused_and_everyday_ones_are_not(
    confined: LocalEnvironment, level: Wish
) -> None:
    result = await run(confined, f"{sys.executable} -c {shlex.quote(CALLS)}")
    came_to = {name: int(number) for name, number in (line.rsplit(" ", 1) for line in result.output.splitlines())}
    barred = {"datagrams": 13, "unix": 13} if level == "files" else {"datagrams": 0, "unix": 0}
    assert came_to == {
        **dict.fromkeys(("unshare", "keyring", "mount", "setuid", "setgid", "born setuid", "typed"), 1),
        "clone3": 38,
        "vsock": 97,
        "plain mode": 0,
        "opened": 0,
        "pair": 0,
        "inet": 0,
        **barred,
    }


def test_every_processor_of_the_table_gets_a_filter_and_others_none() -> None:
    for machine in MACHINES:
        for rules in (SocketRules(), SocketRules(unix=False, network=False)):
            program = filter_program(machine, rules)
            assert program is not None
            assert len(program) % 8 == 0
    assert filter_program("riscv64", SocketRules()) is None


async def test_writes_stay_in_the_workspace_and_keys_are_not_read(confined: LocalEnvironment, root: Path) -> None:
    result = await run(
        confined,
        f"echo in > kept; echo t > $TMPDIR/x && cat $TMPDIR/x; cat ~/.ssh/id; "
        f"echo out > {root}/elsewhere/f; echo out > ~/.bashrc; : > /dev/null",
    )
    assert "t\n" in result.output
    assert "a key" not in result.output
    assert (root / "work" / "kept").read_text() == "in\n"
    assert list((root / "elsewhere").iterdir()) == []
    assert not (root / "home" / ".bashrc").exists()


async def test_the_runtime_cannot_be_signalled_or_looked_into(confined: LocalEnvironment) -> None:
    pid = os.getpid()
    result = await run(confined, f"kill -0 {pid} && echo reached; cat /proc/{pid}/environ | head -c1 | wc -c")
    assert "reached" not in result.output
    assert result.output.split()[-1] == "0"


async def test_no_socket_of_the_machine_is_reached_by_path_or_by_abstract_name(
    confined: LocalEnvironment, root: Path
) -> None:
    servers = []
    for name in (str(root / "elsewhere" / "server.sock"), f"\0hermes-test-{os.getpid()}"):
        server = socket.socket(socket.AF_UNIX)
        server.bind(name)
        server.listen()
        servers.append(server)
        code = f"import socket; s = socket.socket(socket.AF_UNIX); s.connect({name!r}); print('reached')"
        assert "reached" not in (await run(confined, f"{sys.executable} -c {shlex.quote(code)}")).output
    for server in servers:
        server.close()


async def test_protected_names_that_did_not_exist_do_not_stay(confined: LocalEnvironment, root: Path) -> None:
    result = await run(confined, "mkdir .hermes && echo evil > .hermes/x; echo evil > .envrc")
    assert sorted(each.name for each in (root / "work").iterdir()) == []
    assert any(".envrc" in note for note in result.notes)


async def test_a_folder_on_the_way_to_hooks_cannot_be_moved_away(
    supervisor: object, confined: LocalEnvironment, root: Path, level: Wish
) -> None:
    hooks = root / "work" / ".git" / "hooks"
    hooks.mkdir(parents=True)
    (hooks / "pre-commit").write_text("mine\n")
    await run(confined, "mv .git away; cp -r away .git; mkdir -p .git/hooks; echo evil > .git/hooks/pre-commit")
    assert (hooks / "pre-commit").read_text() == "mine\n"


async def test_open_files_memory_and_the_temporary_folder_are_limited(confined: LocalEnvironment) -> None:
    assert (await run(confined, "ulimit -n")).output == "200\n"
    greedy = f"{sys.executable} -c 'x = bytearray(700 << 20); import time; time.sleep(20)'"
    assert (await run(confined, greedy, timeout_s=30)).exit_code == 137
    full = await run(confined, "head -c 60000000 /dev/zero > $TMPDIR/large; sleep 20", timeout_s=30)
    assert full.output.endswith("[Command ended: it had more than 20 MB in the temporary folder]\n")


async def test_the_callers_order_of_path_is_what_commands_get(confined: LocalEnvironment, root: Path) -> None:
    first = (await run(confined, "echo $PATH")).output.split(":")[0]
    assert first == os.environ["PATH"].split(":")[0]


async def test_a_command_that_speaks_like_bubblewrap_runs_once(confined: LocalEnvironment, root: Path) -> None:
    for words in ("", "exec "):
        script = f"echo \"bwrap: Can't mount\"; echo ran >>count; {words}sh -c 'exit 1'"
        done = await run(confined, script)
        assert (done.exit_code, done.output.strip()) == (1, "bwrap: Can't mount")
    assert (root / "work" / "count").read_text() == "ran\n" * 2


async def test_a_command_whose_mounts_failed_once_is_begun_again(
    confined: LocalEnvironment, level: Wish, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if level != "full":
        pytest.skip("no mounts at this level")
    await run(confined, "true")
    gone = iter([[str(root / "elsewhere" / "a" / "socket")]])
    monkeypatch.setattr(bubblewrap, "visible_sockets", lambda _: next(gone, []))
    done = await run(confined, "echo here; ls /proc/self/fd | sort -n | tail -1")
    assert done.exit_code == 0, done.output
    assert done.output.split()[0] == "here"
    assert int(done.output.split()[1]) < 10, "the descriptor that hears of the beginning is shut"
    assert next(gone, None) is None, "the first try failed"


async def test_descriptors_of_any_number_reach_a_confined_program(
    supervisor: ProcessSupervisor, confined: LocalEnvironment
) -> None:
    await run(confined, "true")
    fds = out_of_the_way([in_memory_file(b"x") for _ in range(12)], [])
    script = " ".join(f"cat <&{fd};" for fd in fds)
    spec = SpawnSpec(argv=("bash", "-c", script), cwd="/", env={"PATH": os.defpath}, pass_fds=tuple(fds))
    child = await supervisor.spawn(Decision.own("test"), await confined.confined(spec))
    try:
        output = b"".join([chunk async for chunk in child.output()])
        assert (await child.wait(), output) == (0, b"x" * 12)
    finally:
        child.release()
        for fd in fds:
            os.close(fd)


async def test_shared_memory_of_the_persons_programs_is_out_of_sight_at_full(
    confined: LocalEnvironment, level: Wish
) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    key, create, remove = 0x48000000 + os.getpid(), 0o1600, 0  # IPC_CREAT and mode, IPC_RMID
    made = libc.shmget(key, 4096, create)
    assert made >= 0
    try:
        ask = f"import ctypes; print(ctypes.CDLL(None).shmget({key}, 0, 0))"
        done = await run(confined, shlex.join([sys.executable, "-c", ask]))
        assert done.exit_code == 0, done.output
        assert (int(done.output) < 0) == (level == "full"), "docs/security.md says which level holds this"
    finally:
        libc.shmctl(made, remove, None)
