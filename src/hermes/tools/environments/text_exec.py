"""A `Child` over an interface that only runs a command line and hands its text back when it has ended.

Bytes travel as base64 in both directions. What the program prints goes to a file there, so that the output of a
command that was stopped can still be fetched.
"""

import base64
import binascii
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import NamedTuple

from hermes.errors import ToolError
from hermes.tools.environments.shell_scripts import quoted

_MOST_BYTES = 16 << 20  # of one output; beyond it the middle is left out there
_STDERR_KEPT = 65536
_PIECE_CHARS = 48_000
FOLDER = "/tmp/hermes-exec"  # noqa: S108 - on the other side; one below it for each environment


class TextOutput(NamedTuple):
    """What the interface gives back."""

    code: int
    text: str


RunLine = Callable[[str], Awaitable[TextOutput]]


class ChildOfService:
    """The part of a `Child` that is the same for every program that a service runs for us: its input is sent whole."""

    pid = 0  # a service tells none
    _code: int | None = None
    _errors = b""

    @property
    def is_gone(self) -> bool:
        return self._code is not None

    async def wait(self) -> int:
        return 255 if self._code is None else self._code

    async def exited(self) -> int:
        return await self.wait()

    async def stop(self, grace_s: float = 1.0) -> None:
        """Nothing to do here: the environment ends the program by its mark."""

    async def write(self, data: bytes) -> None:
        raise BrokenPipeError("this backend takes the whole input at the start")

    def close_stdin(self) -> None:
        """Its input has an end from the start."""

    def stderr_tail(self) -> bytes:
        return self._errors

    def release(self) -> None:
        """There is nothing to close."""


class TextChild(ChildOfService):
    """One program, run as one request. It begins when its output is first asked for."""

    def __init__(
        self, run: RunLine, argv: tuple[str, ...], stdin: bytes | None, *, merge_stderr: bool, owner: str
    ) -> None:
        self._run = run
        self._folder = f"{FOLDER}/{owner}/{secrets.token_hex(8)}"
        self._stdin = base64.b64encode(stdin or b"").decode()
        self._argv = argv
        self._merge_stderr = merge_stderr
        self._begun = False

    async def output(self) -> AsyncIterator[bytes]:
        """All of it at the end; asked for again after the program was stopped, what it had printed until then."""
        if self._code is not None:
            return
        if self._begun:
            self._code = -9
            answer = await self._run(f"cat {self._folder}/out | base64 -w0; echo; rm -rf {self._folder}")
        else:
            self._begun = True
            answer = await self._begin()
            self._code = answer.code
        out, _, errors = answer.text.strip().partition("\n")
        self._errors = _decoded(errors, self._code)
        data = _decoded(out, self._code)
        if data:
            yield data

    async def _begin(self) -> TextOutput:
        # A command line has a limit of its own there, so a long input goes ahead in pieces.
        pieces = [self._stdin[at : at + _PIECE_CHARS] for at in range(0, len(self._stdin), _PIECE_CHARS)]
        for piece in pieces[:-1]:
            sent = await self._run(f"mkdir -p -m 700 {self._folder} && printf %s {piece} >>{self._folder}/in64")
            if sent.code != 0:
                return sent
        script = f"""d={self._folder}
mkdir -p -m 700 "$d" || exit 1
printf %s '{pieces[-1] if pieces else ""}' >>"$d/in64"
base64 -d "$d/in64" >"$d/in"
{quoted(*self._argv)} <"$d/in" >"$d/out" 2>{"&1" if self._merge_stderr else '"$d/err"'}
code=$?
if [ "$(stat -c %s "$d/out")" -le {_MOST_BYTES} ]; then base64 -w0 "$d/out"
else {{ head -c {_MOST_BYTES // 4} "$d/out"; tail -c {_MOST_BYTES // 2} "$d/out"; }} | base64 -w0; fi
echo
[ ! -f "$d/err" ] || tail -c {_STDERR_KEPT} "$d/err" | base64 -w0
[ $code -gt 128 ] || rm -rf "$d"
exit $code"""
        return await self._run(quoted("bash", "-c", script))


def _decoded(text: str, code: int) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        # Not our script's answer: the shell there could not even begin it.
        if code == 0:
            raise ToolError(f"the sandbox gave an answer that cannot be read: {text[:200]!r}") from None
        return text.encode()
