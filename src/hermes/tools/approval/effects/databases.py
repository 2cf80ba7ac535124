"""Database clients: the SQL they are given, and the commands that drop whole databases."""

import re
from collections.abc import Callable

from hermes.tools.approval.effects.words import line
from hermes.tools.approval.options import read_options
from hermes.tools.approval.sql import judge_sql
from hermes.tools.approval.state import NOTHING, Cmd, Out
from hermes.tools.approval.text import UNKNOWN, words

_SHELL_ESCAPE = re.compile(r"(?m)^\s*(?:\\!|\.(?:shell|system)|system|!)\s+(.+)$")
_PROGRAM = re.compile(r"(?i)\bprogram\s+'([^']+)'")
_MONGO = re.compile(
    r"\.\s*(?:dropDatabase|drop|dropIndexes|dropUser)\s*\(|\.\s*(?:deleteMany|remove)\s*\(\s*(?:\{\s*\}\s*)?\)"
)


def client(cmd: Cmd) -> Out | None:
    options = read_options(cmd.args, "cefhpUudPHD", frozenset({"command", "execute", "file", "eval", "query"}))
    texts = [
        value
        for key, value in options.values.items()
        if key in ("c", "e", "command", "execute", "eval", "query", "Q", "q")
    ]
    texts += [word for word in cmd.args if " " in word or word.startswith(".")]
    if cmd.stdin.text:
        texts.append(cmd.stdin.text)
    for text in dict.fromkeys(texts):
        sql(cmd, text)
        for script in [*_SHELL_ESCAPE.findall(text), *_PROGRAM.findall(text)]:
            cmd.shell(script, NOTHING)
    if cmd.stdin.text is None and cmd.stdin.labels & {"remote", "decoded"}:
        cmd.run.add("remote_code", f"run downloaded statements with {cmd.name}")
    return None


def sql(cmd: Cmd, text: str) -> None:
    for kind, statement in judge_sql(text):
        cmd.run.add(kind, statement.replace(UNKNOWN, "…"))


def bare(cmd: Cmd) -> Out | None:
    """A line of SQL typed as a command."""
    sql(cmd, " ".join([cmd.name, *cmd.args]))
    return None


def mongo(cmd: Cmd) -> Out | None:
    texts = [*cmd.args, cmd.stdin.text or ""]
    if any(_MONGO.search(text) for text in texts):
        cmd.run.add("database_destroy", line(cmd))
    return None


def redis(cmd: Cmd) -> Out | None:
    words = {arg.lower() for arg in cmd.args} | set((cmd.stdin.text or "").lower().split())
    if words & {"flushall", "flushdb", "shutdown"}:
        cmd.run.add("database_destroy", line(cmd))
    return None


HANDLERS: dict[str, Callable[[Cmd], Out | None]] = {
    **dict.fromkeys(
        words(
            "psql mysql mariadb sqlite3 sqlite sqlcmd isql cockroach clickhouse-client clickhouse duckdb cqlsh bq "
            "snowsql sqlplus pgcli mycli litecli usql trino presto wrangler"
        ),
        client,
    ),
    **dict.fromkeys(words("drop DROP delete DELETE update UPDATE TRUNCATE"), bare),
    **dict.fromkeys(words("mongo mongosh"), mongo),
    **dict.fromkeys(words("redis-cli valkey-cli"), redis),
}
