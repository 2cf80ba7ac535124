"""Database clients: the SQL they are given, and the commands that drop whole databases."""

import re

from hermes.tools.approval.command_text import UNKNOWN, words
from hermes.tools.approval.effects.written_paths import replace
from hermes.tools.approval.options import Options, read_options
from hermes.tools.approval.paths import place, resolve, writes
from hermes.tools.approval.run_state import NOTHING, Command, CommandOutput, Handlers
from hermes.tools.approval.sql import judge_sql, unfamiliar
from hermes.tools.approval.stream_flow import read
from hermes.tools.approval.tables import sections

_SHELL_ESCAPE = re.compile(r"(?m)(?:^\s*(?:\.(?:shell|system)|system|!)\s+|\\!\s*)(.+)$")
_CHARACTERS = 4  # of SQL, that are read in one step
_PROGRAM = re.compile(r"(?i)\bprogram\s+'([^']+)'")
_FILES = frozenset(words("sqlite3 sqlite duckdb litecli"))  # a file comes first, then statements
_IS_TEXT = re.compile(r"[\s;]|/\*")
_META = re.compile(r"(?m)^\s*[.\\][a-z]\w*[^\n]*$")  # commands of the client itself
_CHANGES = re.compile(r"(?is)\s*(?:insert|update|delete|drop|alter|replace|create|pragma|attach|vacuum|reindex)\b")
_MONGO_CALL = re.compile(r"(?<!\w)([A-Za-z_$]\w{0,60})\s{0,8}\(")
_REDIS_READS = re.compile(
    r"(?:config get|client (?:list|getname|id|info)|slowlog (?:get|len)|acl (?:list|whoami|cat)"
    r"|cluster (?:info|nodes|slots)|module list)\b"
)


_DOT_HARMLESS = re.compile(
    r"\.(?:tables|schema|headers?|mode|dump|index(?:es)?|width|separator|quit|exit|help|databases|timer|show|nullvalue"
    r"|print|explain|eqp|fullschema|lint|dbinfo|stats|changes|version|bail|echo|timeout|parameter|limit|open|read|import|sha3sum"
    r"|columns?|maxrows)\b.*"
)
_DOT_WRITES = re.compile(r"\.(?:output|once|backup|save|log|excel|clone|trace)\b\s*(\S*)")
_SQL_FILES = re.compile(
    r"(?i)\binto\s+(?:outfile|dumpfile)\s+'([^']+)'|\bcopy\b.*\bto\s+'([^']+)'|^\s*\\(?:o|g|w|out)\s+(\S+)|\w*log_file\s*=\s*'([^']+)'"
)
_SQL_RUNS = re.compile(
    r"(?i)\b(?:writefile|edit|load_extension|xp_cmdshell|sp_oacreate|sys_exec|sys_eval|lo_export|dbms_scheduler|utl_file|pg_terminate_backend"
    r"|(?:drop|truncate|purge|wipe|destroy|nuke)_\w+(?=\s*\()|pg_drop_replication_slot|pg_reload_conf|pg_read_(?:binary_)?file|lo_import|dblink_exec)\b\s*\(?"
)


def _client_commands(cmd: Command, text: str) -> None:
    """What a client does beside its SQL: files it writes, libraries it loads."""
    has_dots = cmd.name in _FILES
    for row in map(str.strip, text.split("\n") if has_dots else ()):
        if found := _DOT_WRITES.match(row):
            replace(cmd, found[1]) if found[1] else None
        elif re.match(r"\.[a-z]", row) and not _DOT_HARMLESS.fullmatch(row):
            cmd.add("inline_code")
    for found in _SQL_FILES.findall(text):
        writes(cmd, next(part for part in found if part))
    if _SQL_RUNS.search(text):
        cmd.add("inline_code")


def client(cmd: Command) -> CommandOutput | None:
    options = read_options(cmd.args, "cefhpUudPHD", frozenset({"command", "execute", "file", "eval", "query", "host"}))
    texts = [
        value
        for key, value in options.values.items()
        if key in ("c", "e", "command", "execute", "eval", "query", "Q", "q")
    ]
    if cmd.name in _FILES:
        texts += options.operands[1:]
    named = options.value("f", "file")
    texts += [cmd.stdin.text or "", read(named, cmd.scope, cmd.run).text or "" if named else ""]
    spoken = {*texts, *(word for word in options.operands if _IS_TEXT.search(word))}
    texts += [word for word in cmd.args if _IS_TEXT.search(word) or word.startswith(".")]
    made = (cmd.run.files.get(resolve(word, cmd.scope, cmd.run)) for word in cmd.args if "/" in word)
    texts += [out.text for out in made if out is not None and out.text]
    if "\\gexec" in "".join(texts) or any(text and not text.strip(UNKNOWN + " ;\n") for text in texts):
        cmd.add("sql_made")
    for text in dict.fromkeys(texts):
        sql(cmd, _META.sub("", text))
        _client_commands(cmd, text)
        if text in spoken and (strange := unfamiliar(_META.sub("", text))):
            cmd.run.add("database_destroy", f"{strange}: {cmd.line}")
        if _CHANGES.match(text):
            _own_database(cmd, options.operands)
        for script in [*_SHELL_ESCAPE.findall(text), *_PROGRAM.findall(text)]:
            cmd.shell(script, NOTHING)
    if cmd.stdin.text is None and cmd.stdin.labels & {"remote", "decoded"}:
        cmd.run.add("remote_code", f"run downloaded statements with {cmd.name}")
    elif "dump" in cmd.stdin.labels and _is_elsewhere(options):
        cmd.run.add("database_destroy", f"put a copy over a database elsewhere: {cmd.line}")
    elif cmd.stdin.text is None and "file" not in cmd.stdin.labels:
        cmd.run.add("sql_made", f"run what another program prints with {cmd.name}")
    return dump(cmd) if any(text.startswith(".dump") for text in texts) else None


def dump(_cmd: Command) -> CommandOutput:
    """A copy of a database as statements: what a person has in a file, or could have."""
    return CommandOutput(None, frozenset({"file", "dump"}))


def _is_elsewhere(options: Options) -> bool:
    """Whether the client talks to another machine, as far as its words tell."""
    host = options.value("h", "host") or "".join(re.findall(r"//(?:[^/@]*@)?([^:/?]+)", " ".join(options.operands))[:1])
    return bool(host) and host not in ("localhost", "127.0.0.1", "::1", "db", "postgres", "mysql") and host[:1] != "/"


def _own_database(cmd: Command, names: list[str]) -> None:
    for word in names:
        if "/" in word and place(cmd, word) == "own":
            writes(cmd, word)


def sql(cmd: Command, text: str) -> None:
    cmd.run.budget.spend(1 + len(text) // _CHARACTERS)
    for kind, statement in judge_sql(text):
        cmd.run.add(kind, statement.replace(UNKNOWN, "…"))


def bare(cmd: Command) -> CommandOutput | None:
    """A line of SQL typed as a command."""
    sql(cmd, " ".join([cmd.name, *cmd.args]))
    return None


def mongo(cmd: Command) -> CommandOutput | None:
    """mongosh: calls that look, add or change one thing; any other asks."""
    options = read_options(cmd.args, "", frozenset({"eval"}))
    texts = [options.value("eval") or "", cmd.stdin.text or ""]
    for text in texts:
        strange = [
            name
            for name in _MONGO_CALL.findall(text)
            if name not in sections("verbs.txt")["mongo"] and name not in ("function", "if", "for", "while")
        ]
        if (
            strange
            or re.search(r"\[\s*[^\d\s\]]", re.sub(r"\[\s*\{", "", text))
            or re.search(r"\b(?:drop|shutdown|delete)\w*\s*:", text)
        ):
            cmd.add("database_destroy")
    return None


def redis(cmd: Command) -> CommandOutput | None:
    """redis-cli: commands that look, or change one key; any other asks."""
    operands = read_options(
        cmd.args, "hpnarid", frozenset({"user", "pass", "pattern", "count", "cacert", "cert", "key"})
    ).operands
    rows = [" ".join(operands).lower()]
    rows += (cmd.stdin.text or "").lower().splitlines() if not operands else []
    if (
        "--eval" in cmd.args
        or "--pipe" in cmd.args
        or (cmd.stdin.text is None and not operands and cmd.stdin.labels & {"remote", "decoded"})
    ):
        cmd.add("database_destroy")
        return None
    for row in rows:
        verb = row.split(" ", 1)[0].strip("'\"")
        if not verb or verb in sections("verbs.txt")["redis"] or _REDIS_READS.match(row):
            if verb in ("del", "hdel", "unlink") and UNKNOWN in row:
                cmd.add("database_destroy")
            continue
        cmd.add("database_destroy")
    return None


HANDLERS: Handlers = {
    **dict.fromkeys(
        words(
            "psql mysql mariadb sqlite3 sqlite sqlcmd isql cockroach clickhouse-client clickhouse duckdb cqlsh bq "
            "snowsql sqlplus pgcli mycli litecli usql trino presto wrangler influx cypher-shell "
            "hive beeline spark-sql impala-shell"
        ),
        client,
    ),
    **dict.fromkeys(words("drop DROP delete DELETE update UPDATE TRUNCATE SELECT INSERT CREATE ALTER"), bare),
    **dict.fromkeys(words("pg_dump pg_dumpall mysqldump mariadb-dump"), dump),
    **dict.fromkeys(words("mongo mongosh"), mongo),
    **dict.fromkeys(words("redis-cli valkey-cli"), redis),
}
