"""Run pytest with the arguments given; then fail if any process that the tests started is still there.

The look at the end finds what no single test can see: a detached process, whose parent has gone. Everything that
`./check` starts inherits HERMES_CHECK_RUN, whose value is this run's own.
"""

import os
import signal
import sys

import psutil
import pytest


def main() -> int:
    left: list[str] = []

    class LookForLeftovers:
        """Looks when all workers have ended, before pytest writes its closing line."""

        @pytest.hookimpl(trylast=True)
        def pytest_sessionfinish(self, session: pytest.Session) -> None:
            if not hasattr(session.config, "workerinput"):
                left.extend(_leftovers())
                if left:
                    session.exitstatus = pytest.ExitCode.TESTS_FAILED

        def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
            for process in left:
                terminalreporter.write_line(f"FAILED left running after the tests: {process}", red=True)

    # Started in the background, a shell makes everything below deaf to Ctrl-C, and tests of Ctrl-C with it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    arguments = sys.argv[1:]
    if sys.version_info < (3, 11, 5):
        # Other reports parse the source, which here may fail by chance (python/cpython#106905) and end the whole run.
        arguments.append("--tb=native")
    return int(pytest.main(arguments, plugins=[LookForLeftovers()])) or (1 if left else 0)


def _leftovers() -> list[str]:
    run = os.environ.get("HERMES_CHECK_RUN")
    if not run:
        return []
    this = psutil.Process()
    own = {this.pid, *(parent.pid for parent in this.parents())}
    # The workers of this very run end with it.
    own |= {child.pid for child in this.children()}
    found = []
    for process in psutil.process_iter():
        try:
            if process.pid not in own and process.environ().get("HERMES_CHECK_RUN") == run:
                found.append(f"{process.pid} {' '.join(process.cmdline())}")
        except (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess):
            continue  # gone, or another user's, and then not ours
    return found


if __name__ == "__main__":
    sys.exit(main())
