"""Background processes where only a shell can be reached: files in the temporary folder there, no stdin."""

import asyncio
import secrets
import time
from collections.abc import Callable

import msgspec

from hermes.errors import ToolError
from hermes.seams import Decision
from hermes.tools.environments import background as wording
from hermes.tools.environments import shell_scripts
from hermes.tools.environments.background import (
    BackgroundRecord,
    BackgroundRequest,
    Breaker,
    State,
    WatchLimit,
    end_all,
)
from hermes.tools.environments.remote_files import RunScript
from hermes.tools.terminal.output_text import text_of
from hermes.typed import from_json

_KILL_WAIT_S = 8.0
_LOG_BYTES = 1 << 20  # of a log, what is fetched: its end

# Arguments: stem of the files, the record, the command, the folder to run in, the shell's state. `setsid` takes it out
# of the session that ends with the connection; the subshell writes the exit code when the command has ended.
_START = f"""
COMMAND={shell_scripts.quoted(shell_scripts.COMMAND)}
stem=$1
where=$4
case $where in "~"*) where=$HOME${{where#"~"}} ;; esac
for old in $(find /tmp -maxdepth 1 -name 'hermes_bg_*.exit' -user "$(id -u)" -mmin +30 2>/dev/null); do
  rm -f "${{old%.exit}}".*
done
mask=$(umask)
umask 077
printf '%s' "$2" >"$stem.json" && : >"$stem.log" || exit 1
umask "$mask"
(
  export HERMES_CHILD_OF="$stem"
  setsid bash -c 'stem=$1; shift
    bash --noprofile --norc -c "$@" </dev/null >"$stem.log" 2>&1
    echo $? >"$stem.exit"' bash "$stem" "$COMMAND" bash "$3" "$where" "$5" /dev/null /dev/null "" \\
    </dev/null >/dev/null 2>&1 &
  echo $! >"$stem.pid"
)
cat "$stem.pid"
"""
# Only files of one's own are believed: everybody may write to the folder.
_ALL = """
for file in /tmp/hermes_bg_*.json; do
  [ -f "$file" ] && [ -O "$file" ] || continue
  cat "$file"; printf '\\1'; cat "${file%json}pid" 2>/dev/null; printf '\\0'
done
true
"""
# Arguments: stem, the byte to begin with, how many to give at most. First comes the size, so that none is lost.
_NEW = """
size=$(stat -c %s -- "$1.log" 2>/dev/null || echo 0)
echo "$size"
tail -c "+$2" -- "$1.log" 2>/dev/null | head -c "$((size - $2 + 1))" | tail -c "$3"
"""
_STATE = """
if [ -f "$1.exit" ]; then echo exited; cat "$1.exit"; stat -c %Y "$1.exit"
elif kill -0 "$(cat "$1.pid")" 2>/dev/null; then echo running; else echo exited; fi
"""
_END = """
for signal in TERM KILL KILL; do
  files=$(grep -lz -- "^HERMES_CHILD_OF=$1\\$" /proc/[0-9]*/environ 2>/dev/null)
  [ -n "$files" ] || break
  for file in $files; do file=${file#/proc/}; kill -$signal "${file%/environ}" 2>/dev/null; done
  sleep "$2"
done
[ -f "$1.exit" ] || echo 143 >"$1.exit"
"""


class RemoteProcesses:
    """`Background` by scripts. A later session on the same machine finds what runs there.

    `snapshot` names the file of the shell's state there; it is empty until the other side was reached.
    """

    def __init__(self, environment_id: str, run: RunScript, snapshot: Callable[[], str]) -> None:
        self._environment_id = environment_id
        self._run = run
        self._snapshot = snapshot
        self._limits: dict[str, WatchLimit] = {}
        self._read_to: dict[str, int] = {}
        self._seen: set[str] = set()
        self._awaited: set[str] | None = None  # what there may be news of; None until what runs there was looked at
        self._breaker = Breaker()

    async def start(self, order: BackgroundRequest, decision: Decision) -> BackgroundRecord:
        if not decision.allowed:
            raise ToolError(decision.reason or "the command was not allowed")
        if order.pty:
            raise ToolError("this backend has no terminals for background processes; start it without pty")
        await self._run("true")  # the session's shell state is made by the first thing that runs there
        ident = f"proc_{secrets.token_hex(6)}"
        record = BackgroundRecord(id=ident, order=order, pid=0, started_at=time.time(), backend=self._environment_id)
        answer = await self._run(
            _START, _stem(ident), msgspec.json.encode(record).decode(), order.command, order.cwd, self._snapshot()
        )
        if answer.code != 0:
            raise ToolError(f"could not start it in the background: {answer.errors.strip()}")
        if self._awaited is not None and (order.notify or order.watch):
            self._awaited.add(ident)
        return msgspec.structs.replace(record, pid=int(answer.output))

    async def records(self, task_id: str | None = None) -> list[BackgroundRecord]:
        answer = await self._run(_ALL)
        found = [_record(each) for each in answer.output.split(b"\0") if each]
        found.sort(key=lambda record: record.started_at)
        return [record for record in found if task_id is None or record.order.task_id == task_id]

    async def find(self, ident: str) -> BackgroundRecord | None:
        return next((record for record in await self.records() if record.id == ident), None)

    async def state(self, record: BackgroundRecord) -> State:
        words = (await self._run(_STATE, _stem(record.id))).output.decode().split()
        if words[:1] == ["running"]:
            return State(status="running")
        if len(words) < 3:
            return State(status="exited")
        return State(status="exited", exit_code=int(words[1]), ended_at=float(words[2]))

    async def log(self, record: BackgroundRecord) -> bytes:
        return (await self._run('tail -c "$2" -- "$1.log" 2>/dev/null', _stem(record.id), str(_LOG_BYTES))).output

    async def kill(self, record: BackgroundRecord, grace_s: float = 1.0) -> bool:
        if (await self.state(record)).status == "exited":
            return False
        async with asyncio.timeout(grace_s * 3 + _KILL_WAIT_S):
            await self._run(_END, _stem(record.id), f"{min(grace_s, 1.0):g}")
        return True

    async def write(self, record: BackgroundRecord, data: bytes) -> None:
        raise ToolError(f"{record.id} has no stdin: background processes on this backend cannot be written to")

    async def close_stdin(self, record: BackgroundRecord) -> None:
        raise ToolError(f"{record.id} has no stdin: background processes on this backend cannot be written to")

    async def mark_seen(self, record: BackgroundRecord) -> None:
        self._seen.add(record.id)

    def is_silent(self, *_session_ids: str) -> bool:
        return not self._snapshot() or self._awaited == set()

    async def notices(self, *session_ids: str) -> list[str]:
        if self.is_silent():
            return []  # each look is a round trip
        awaited = [
            record
            for record in await self.records()
            if record.order.session_id in session_ids and (record.order.notify or record.order.watch)
        ]
        self._awaited = {record.id for record in awaited} - self._seen
        told: list[str] = []
        for record in awaited:
            if record.id in self._awaited:
                told += await self._news_of(record)
        return told

    async def end_session(self, session_id: str) -> int:
        if not self._snapshot():
            return 0  # nothing was run there, and the end of a session is no reason to connect
        return await end_all(self, [each for each in await self.records() if each.order.session_id == session_id])

    async def _news_of(self, record: BackgroundRecord) -> list[str]:
        limit = self._limits.setdefault(record.id, WatchLimit())
        state = await self.state(record)
        told: list[str] = []
        if record.order.watch and not limit.given_up:
            lines = await self._new_lines(record, is_over=state.status == "exited")
            told += wording.matches(record, lines, limit, self._breaker)
        if state.status == "exited":
            self._seen.add(record.id)
            if record.order.notify or limit.given_up:
                told.append(wording.completion(record, state.exit_code, text_of(await self.log(record))))
        return told

    async def _new_lines(self, record: BackgroundRecord, *, is_over: bool) -> list[str]:
        """What was printed since the last look, in whole lines."""
        first = self._read_to.get(record.id, 0) + 1
        answer = await self._run(_NEW, _stem(record.id), str(first), str(_LOG_BYTES))
        size, _, new = answer.output.partition(b"\n")
        complete = new if is_over else new[: new.rfind(b"\n") + 1]
        self._read_to[record.id] = int(size) - (len(new) - len(complete))
        return text_of(complete).splitlines()


def _record(text: bytes) -> BackgroundRecord:
    record, _, pid = text.partition(b"\1")
    return msgspec.structs.replace(from_json(record, BackgroundRecord), pid=int(pid or 0))


def _stem(ident: str) -> str:
    return f"/tmp/hermes_bg_{ident}"  # noqa: S108 - on the other side, where it is the one folder that is always there
