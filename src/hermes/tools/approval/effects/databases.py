"""Database clients: the SQL they are given, and the commands that drop whole databases."""

import re
from collections.abc import Callable

from hermes.tools.approval.effects.words import line
from hermes.tools.approval.options import read_options
from hermes.tools.approval.sql import judge_sql
from hermes.tools.approval.state import NOTHING, Cmd, Out
from hermes.tools.approval.text import UNKNOWN

_SHELL_ESCAPE = re.compile(r"(?m)^\s*(?:\\!|\.(?:shell|system)|system|!)\s+(.+)$")
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
        for script in _SHELL_ESCAPE.findall(text):
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


def drop_tool(cmd: Cmd) -> Out | None:
    if not read_options(cmd.args).has("?", "help", "version"):
        cmd.run.add("database_destroy", line(cmd))
    return None


def admin(cmd: Cmd) -> Out | None:
    if any(arg.lower() == "drop" for arg in cmd.args):
        cmd.run.add("database_destroy", line(cmd))
    return None


def framework(cmd: Cmd) -> Out | None:
    """rails, rake, artisan, prisma, alembic: tasks that drop or reset the database."""
    pattern = (
        r"db:(?:drop|reset|purge|schema:load)|migrate:(?:fresh|reset|refresh)|db:wipe|--force-reset|downgrade base"
    )
    text = " ".join(cmd.args)
    if re.search(pattern, text) or (cmd.name == "prisma" and re.search(r"migrate reset", text)):
        cmd.run.add("database_destroy", line(cmd))
    return None


HANDLERS: dict[str, Callable[[Cmd], Out | None]] = {
    **dict.fromkeys(
        [
            "psql",
            "mysql",
            "mariadb",
            "sqlite3",
            "sqlite",
            "sqlcmd",
            "isql",
            "cockroach",
            "clickhouse-client",
            "clickhouse",
            "duckdb",
            "cqlsh",
            "bq",
            "snowsql",
            "sqlplus",
            "pgcli",
            "mycli",
            "litecli",
            "usql",
            "trino",
            "presto",
        ],
        client,
    ),
    **dict.fromkeys(["drop", "DROP", "delete", "DELETE", "update", "UPDATE"], bare),
    "TRUNCATE": bare,
    "mongo": mongo,
    "mongosh": mongo,
    "redis-cli": redis,
    "valkey-cli": redis,
    "dropdb": drop_tool,
    "dropuser": drop_tool,
    "mysqladmin": admin,
    "rails": framework,
    "rake": framework,
    "artisan": framework,
    "prisma": framework,
    "alembic": framework,
}
