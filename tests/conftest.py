"""What every test gets: a home of its own, loopback only, and a look for processes left behind."""

import ipaddress
import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import hypothesis
import psutil
import pytest

LEFTOVER_GRACE_S = 5.0
# A slow machine is no failure: neither of an example nor of making them.
hypothesis.settings.register_profile("house", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.load_profile("house")

_refused: list[str] = []  # what the audit hook turned down and no test has been blamed for yet


class NotLoopback(RuntimeError):
    """A test tried to reach beyond this machine."""


def pytest_configure(config: pytest.Config) -> None:
    sys.addaudithook(_refuse_other_hosts)  # cannot be removed, and need not be: this process runs tests only


@pytest.hookimpl(trylast=True)  # after xdist has written the groups down
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        _show_group(item)
    _leave_out_far(config, items)
    # The long ones first: at the end, one worker with a container would keep the other waiting.
    items.sort(key=lambda item: item.get_closest_marker("real") is None)
    if os.environ.get("HERMES_TEST_FULL") == "1":
        return
    for item in items:
        if item.get_closest_marker("full"):
            item.add_marker(pytest.mark.skip(reason="a long count: runs under ./check --full"))


def _show_group(item: pytest.Item) -> None:
    """Give the test its group where the scheduler looks for it, so that a group stays on one worker.

    xdist 3.8 writes `test@group` into `_nodeid`, which pytest 9.2 no longer reads: without this each worker would start
    an engine of its own. Held by tests/house/test_conftest.py.
    """
    grouped = vars(item).get("_nodeid")
    if grouped and grouped != item.nodeid and hasattr(item, "_id"):
        item._id = type(item._id).parse(grouped)


def _leave_out_far(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Under ./check --changed: tests of real parts run where the change is, and are counted as deselected elsewhere."""
    folders = os.environ.get("HERMES_TEST_REAL_IN")
    if folders is None:
        return
    near = tuple(f"{folder}/" for folder in folders.split(":") if folder)
    far = [item for item in items if item.get_closest_marker("real") and not item.nodeid.startswith(near)]
    config.hook.pytest_deselected(items=far)
    items[:] = [item for item in items if item not in set(far)]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Repeat before the closing line which stages of ./check failed, so that it is not read as all there is."""
    for stage in os.environ.get("HERMES_CHECK_FAILED", "").split():
        terminalreporter.write_line(f"FAILED before the tests: {stage} (see above)", red=True)


@pytest.fixture
def hermes_home(tmp_path: Path) -> Path:
    """An empty HERMES_HOME; the variable points to it for the length of the test."""
    home = tmp_path / "hermes-home"
    home.mkdir(exist_ok=True)
    return home


@pytest.fixture(autouse=True)
def _own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep whatever a test starts or writes by default out of the home of whoever runs the tests."""
    monkeypatch.setenv("HERMES_HOME", str(tmp_path / "hermes-home"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


@pytest.fixture(autouse=True)
def _own_tools() -> Iterator[None]:
    """Take out of the process's registry what a test's own tool files brought: the next test would be offered them."""
    before = dict(_tools())
    yield
    for name in [name for name, tool in _tools().items() if tool.origin != "builtin" and tool is not before.get(name)]:
        sys.modules["hermes.tools.registry"].registry.deregister(name)
        if name in before:
            sys.modules["hermes.tools.registry"].registry.add(before[name])


def _tools() -> dict[str, Any]:
    registry = getattr(sys.modules.get("hermes.tools.registry"), "registry", None)
    return registry._tools if registry is not None else {}


@pytest.fixture(autouse=True)
def _nothing_left_behind() -> Iterator[None]:
    """Fail a test that leaves a child process running or reached for another host.

    Fixtures of a wider scope are set up before this one, so what they hold is not counted.
    """
    before = _children()
    _refused.clear()
    yield
    left = [child for child in _children() if child not in before]
    if left and _ends_keeper({child.pid for child in left}):
        left = [child for child in _children() if child not in before]
    if left:
        left = psutil.wait_procs(left, timeout=LEFTOVER_GRACE_S)[1]
    described = [_describe(process) for process in left]
    for process in left:
        process.kill()
    assert not described, f"processes left running: {described}"
    assert not _refused, f"traffic beyond loopback was refused: {_refused}"


def _ends_keeper(started: set[int]) -> bool:
    """End the keeper of this process if the test started it: it lives as long as the process, whatever a test closes.

    The first file tool of a process starts it, to find out what can be enforced here; which test that is, is chance.
    """
    process = sys.modules.get("hermes.runtime.setup.process")
    if process is None:
        return False
    supervisor = process.shared._supervisor
    if supervisor is None or supervisor.keeper_pid not in started:
        return False
    process.shared._supervisor = None
    supervisor.close_now()
    return True


def _children() -> set[psutil.Process]:
    """All processes below this one. The kernel's own list is asked first: psutil walks every process of the machine."""
    try:
        if not any(Path(f"{task}/children").read_bytes() for task in Path("/proc/self/task").iterdir()):
            return set()
    except OSError:
        pass  # another system, a kernel without that list, or a thread that just ended
    return set(psutil.Process().children(recursive=True))


def _describe(process: psutil.Process) -> str:
    try:
        return f"{process.pid} {' '.join(process.cmdline()) or process.name()}"
    except psutil.NoSuchProcess:
        return f"{process.pid} (ended meanwhile)"


def _refuse_other_hosts(event: str, arguments: tuple[object, ...]) -> None:
    if event in ("socket.connect", "socket.bind", "socket.sendto"):
        source, address = arguments[0], arguments[1]
        if isinstance(source, socket.socket) and source.family not in (socket.AF_INET, socket.AF_INET6):
            return
        host = address[0] if isinstance(address, tuple) else None
    elif event == "socket.getaddrinfo":
        host = arguments[0]
    else:
        return
    if host is None or _is_loopback(host):
        return
    _refused.append(f"{event} {host!r}")
    raise NotLoopback(f"{event} {host!r}: tests talk to 127.0.0.1 and ::1 only")


def _is_loopback(host: object) -> bool:
    text = host.decode(errors="replace") if isinstance(host, bytes) else str(host)
    if text == "localhost" or text.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(text).is_loopback
    except ValueError:
        return False
