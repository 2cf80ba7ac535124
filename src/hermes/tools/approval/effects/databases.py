"""Database clients: the SQL they are given, and the commands that drop whole databases."""

import itertools
import re
from collections.abc import Callable

from hermes.tools.approval.effects.words import line
from hermes.tools.approval.options import read_options
from hermes.tools.approval.paths import classify, resolve, write_path
from hermes.tools.approval.sql import judge_sql
from hermes.tools.approval.state import NOTHING, Cmd, Out
from hermes.tools.approval.streams import read
from hermes.tools.approval.text import UNKNOWN, words

_SHELL_ESCAPE = re.compile(r"(?m)^\s*(?:\\!|\.(?:shell|system)|system|!)\s+(.+)$")
_PROGRAM = re.compile(r"(?i)\bprogram\s+'([^']+)'")
_EXECUTED = re.compile(r"(?i)\bexecute\s+(?:immediate\s+)?'((?:[^']|'')*)'")  # SQL that a procedure makes
_META = re.compile(r"(?m)^\s*[.\\][a-z]\w*[^\n]*$")  # commands of the client itself
_CHANGES = re.compile(r"(?is)\s*(?:insert|update|delete|drop|alter|replace|create|pragma|attach|vacuum|reindex)\b")
_MONGO = re.compile(
    r"\b(?:dropDatabase|drop)\s*:|\.\s*(?:dropDatabase|drop|dropIndexes|dropUser)\s*\(|\.\s*(?:deleteMany|remove)\s*\(\s*(?:\{\s*\}\s*)?\)"
)


_REDIS = re.compile(r"\b(?:flushall|flushdb|shutdown)\b|\bconfig set\b")


def client(cmd: Cmd) -> Out | None:
    options = read_options(cmd.args, "cefhpUudPHD", frozenset({"command", "execute", "file", "eval", "query"}))
    texts = [
        value
        for key, value in options.values.items()
        if key in ("c", "e", "command", "execute", "eval", "query", "Q", "q")
    ]
    texts += [word for word in cmd.args if " " in word or word.startswith(".")]
    named = options.value("f", "file")
    texts += [cmd.stdin.text or "", read(named, cmd.scope, cmd.run).text or "" if named else ""]
    for text in dict.fromkeys(texts):
        sql(cmd, _META.sub("", text))
        if _CHANGES.match(text):
            _own_database(cmd, options.operands)
        for script in [*_SHELL_ESCAPE.findall(text), *_PROGRAM.findall(text)]:
            cmd.shell(script, NOTHING)
    if cmd.stdin.text is None and cmd.stdin.labels & {"remote", "decoded"}:
        cmd.run.add("remote_code", f"run downloaded statements with {cmd.name}")
    return None


def _own_database(cmd: Cmd, names: list[str]) -> None:
    for word in names:
        if "/" in word and classify(resolve(word, cmd.scope, cmd.run), cmd.run.places) == "own":
            write_path(cmd.run, cmd.scope, word, line(cmd))


def sql(cmd: Cmd, text: str) -> None:
    made = [body.replace("''", "'") for body in _EXECUTED.findall(text)]
    for kind, statement in itertools.chain(judge_sql(text), *map(judge_sql, made)):
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
    text = " ".join([*cmd.args, cmd.stdin.text or ""]).lower()
    if _REDIS.search(text) or (UNKNOWN in text and re.search(r"\b(?:del|unlink)\b", text)):
        cmd.run.add("database_destroy", line(cmd))
    return None


HANDLERS: dict[str, Callable[[Cmd], Out | None]] = {
    **dict.fromkeys(
        words(
            "psql mysql mariadb sqlite3 sqlite sqlcmd isql cockroach clickhouse-client clickhouse duckdb cqlsh bq "
            "snowsql sqlplus pgcli mycli litecli usql trino presto wrangler influx"
        ),
        client,
    ),
    **dict.fromkeys(words("drop DROP delete DELETE update UPDATE TRUNCATE"), bare),
    **dict.fromkeys(words("mongo mongosh"), mongo),
    **dict.fromkeys(words("redis-cli valkey-cli"), redis),
}
