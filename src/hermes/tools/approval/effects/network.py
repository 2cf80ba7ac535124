"""Programs that talk to other hosts: what comes in is remote, what goes out may be private."""

import itertools
import re
from collections.abc import Iterable

from hermes.tools.approval.command_text import SECRET, UNKNOWN, words
from hermes.tools.approval.effects.written_paths import replace
from hermes.tools.approval.effects_model import Severity
from hermes.tools.approval.options import read_options
from hermes.tools.approval.paths import is_private, resolve, show, writes
from hermes.tools.approval.run_state import DARK, NOTHING, Command, CommandOutput, Handlers
from hermes.tools.approval.tables import word_list
from hermes.tools.approval.word_patterns import plain
from hermes.tools.approval.wrappers import ssh_options

_HOST = re.compile(r"(?:[a-z][a-z0-9+.-]*://)?(?:[^/@\s]*@)?(\[[0-9a-f:]+\]|[^/:?#\s]+)")
_REMOTE = frozenset({"remote"})
_DATA = re.compile(r"-[dF]|--(?:data|data-raw|data-binary|data-urlencode|data-ascii|json|form|form-string)(?==|\Z)")
_AUTH_HEADER = re.compile(r"(?i)\s*[\w-]*(?:auth|token|key|secret|cookie|bearer)[\w-]*\s*:")
_CURL_SHORT = "AbcCdDeEFhHKmoPQrtTuUwxXyYz"


def host_of(url: str) -> str:
    found = _HOST.match(url.lower())
    return plain(found[1]).replace(UNKNOWN, "…") if found else "?"


def sent(cmd: Command, words: Iterable[str], host: str) -> None:
    """Record that the named files leave for `host`; private ones ask."""
    run = cmd.run
    private: list[str] = []
    for word in itertools.chain.from_iterable(part.strip("{}").split(",") for part in words):  # curl knows braces, too
        path = resolve(word, cmd.scope, run)
        made = run.files.get(path)
        if (made is not None and made.labels & {"private", "environment"}) or (
            made is None and is_private(path, run.places)
        ):
            private.append(show(path, run.places))
    if private:
        run.add("exfiltration", f"send {', '.join(private)} to {host}", tuple(private), hosts=(host,))
    else:
        run.add("network", f"send files to {host}", hosts=(host,), severity=Severity.NOTE)


def _stream_out(cmd: Command, host: str) -> None:
    if (cmd.stdin.labels | cmd.run.substituted) & {"private", "environment"}:
        cmd.run.add("exfiltration", f"send private data to {host}", hosts=(host,))
    elif cmd.stdin.text and SECRET in cmd.stdin.text:
        cmd.run.add("exfiltration", f"send a credential of the environment to {host}", hosts=(host,))


def _credential_out(cmd: Command, texts: Iterable[str], host: str) -> None:
    """A credential in what is sent or asked for; in a header or as a login it is how a service is used."""
    if any(SECRET in text for text in texts):
        cmd.run.add("exfiltration", f"send a credential of the environment to {host}", hosts=(host,))


def curl(cmd: Command) -> CommandOutput:
    options = read_options(cmd.args, _CURL_SHORT, word_list("network.curl_long"))
    run = cmd.run
    urls = [word for word in options.operands if word] or [options.values.get("url", "")]
    hosts = tuple(dict.fromkeys(host_of(url) for url in urls if url))
    host = hosts[0] if hosts else "?"
    run.add("network", f"contact {host}", hosts=hosts, severity=Severity.NOTE)
    uploads = list(_uploads(cmd.args))
    cookies = options.value("b", "cookie")
    if cookies and "=" not in cookies:  # a file, of which every line is sent
        uploads.append(cookies)
    _credential_out(cmd, [*_data(cmd.args), *urls, *_odd_headers(cmd.args)], host)
    sent(cmd, [word for word in uploads if word != "-"], host) if uploads else None
    if run.substituted & {"private", "environment"}:
        run.add("exfiltration", f"send private data to {host}", hosts=hosts)
    if "-" in uploads or "." in uploads or any(url.lower().startswith("telnet:") for url in urls):
        _stream_out(cmd, host)
    for config in (options.value("K", "config"),):
        if config == "-" or (config and UNKNOWN in config):
            run.unknown("curl takes its arguments from text that is only known when it runs")
        elif config:
            sent(cmd, [config], host)
    _deletes(cmd, options.value("X", "request") or "", urls)
    folder = options.value("output-dir")
    target = options.value("o", "output")
    if target is not None and target != "-":
        _save(cmd, f"{folder}/{target}" if folder else target)
        return NOTHING
    if options.has("O", "remote-name", "remote-name-all"):
        _save_named(cmd, urls, folder)
        return NOTHING
    return CommandOutput(None, _REMOTE)


def _deletes(cmd: Command, method: str, urls: list[str]) -> None:
    """DELETE is everyday work on a service one develops; elsewhere, or of everything, a person decides."""
    if any("_delete_by_query" in url for url in urls):
        cmd.add("infrastructure")
    if method.upper() != "DELETE":
        return
    for url in map(plain, urls):
        here = host_of(url) in ("localhost", "127.0.0.1", "[::1]", "0.0.0.0")  # noqa: S104 - a name in a command
        if not here or ":9200" in url or re.search(r"/(?:_all|\*|_delete_by_query)", url):
            cmd.add("infrastructure", hosts=(host_of(url),))


def _save_named(cmd: Command, urls: Iterable[str], folder: str | None) -> None:
    """Files that get the last part of their address as a name: it has no slash, so it stays in the folder."""
    for url in urls:
        name = url.split("?", 1)[0].rstrip("/").rsplit("/", 1)[-1] or "index.html"
        _save(cmd, f"{folder or '.'}/{'x' if UNKNOWN in name else name}")


def _uploads(args: list[str]) -> Iterable[str]:
    """The files that curl options read and send: `-d @f`, `-F x=@f`, `-T f`."""
    for position, arg in enumerate(args):
        following = args[position + 1] if position + 1 < len(args) else ""
        if arg == "--upload-file" or re.fullmatch(r"-[a-zA-Z]*T", arg):
            yield following
        elif arg.startswith("--upload-file="):
            yield arg.partition("=")[2]
        elif arg.startswith("-T") and len(arg) > 2:
            yield arg[2:]
        value = ""
        if re.fullmatch(r"-[a-zA-Z]*[dF]|--(?:data|data-binary|data-urlencode|data-ascii|json|form)", arg):
            value = following
        elif re.match(r"-[dF].|--(?:data|data-binary|data-urlencode|data-ascii|json|form)=", arg):
            value = arg.partition("=")[2] if arg.startswith("--") else arg[2:]
        found = re.match(r"(?:[^@<=]*=?)[@<](.+?)(?:;.*)?\Z", value, re.DOTALL)
        if found:
            yield found[1]


def _data(args: list[str]) -> Iterable[str]:
    for position, arg in enumerate(args):
        if _DATA.fullmatch(arg) and position + 1 < len(args):
            yield args[position + 1]
        elif _DATA.match(arg) and (arg.startswith("--") or len(arg) > 2):
            yield arg


def _odd_headers(args: list[str]) -> Iterable[str]:
    """Headers other than those that services take credentials in."""
    for position, arg in enumerate(args[:-1]):
        if arg in ("-H", "--header") and not _AUTH_HEADER.match(args[position + 1]):
            yield args[position + 1]


def _save(cmd: Command, target: str) -> None:
    replace(cmd, target)
    cmd.run.files[resolve(target, cmd.scope, cmd.run)] = CommandOutput(None, _REMOTE)


def wget(cmd: Command) -> CommandOutput:
    longs = frozenset(
        words("output-document execute post-data post-file body-file header user-agent directory-prefix tries timeout")
    )
    options = read_options(cmd.args, "OoPUtTwQiAeR", longs)
    run = cmd.run
    hosts = tuple(dict.fromkeys(host_of(url) for url in options.operands))
    host = hosts[0] if hosts else "?"
    run.add("network", f"contact {host}", hosts=hosts, severity=Severity.NOTE)
    upload = options.value("post-file", "body-file")
    if upload is not None:
        sent(cmd, [upload], host)
    if run.substituted & {"private", "environment"}:
        run.add("exfiltration", f"send private data to {host}", hosts=hosts)
    _credential_out(cmd, [*options.operands, options.value("post-data", "body-data") or ""], host)
    target = options.value("O", "output-document")
    for key in ("e", "execute"):
        setting = options.values.get(key, "")
        if re.match(r"(?:output_document|post_file|body_file|use_askpass|dir_prefix)\s*=", setting):
            writes(cmd, setting.partition("=")[2].strip())
    if target is None:
        _save_named(cmd, options.operands, options.value("P", "directory-prefix"))
        return NOTHING
    if target in ("-", "/dev/stdout"):
        return CommandOutput(None, _REMOTE)
    _save(cmd, target)
    return NOTHING


def fetch(cmd: Command) -> CommandOutput:
    """aria2c, http, lynx and others: a host is contacted, output is remote."""
    words = [word for word in cmd.args if not word.startswith("-")]
    urls = [word for word in words if "://" in word or "." in word]
    host = host_of(urls[0]) if urls else "?"
    cmd.run.add("network", f"contact {host}", hosts=(host,), severity=Severity.NOTE)
    sent(cmd, [word.split("@", 1)[1] for word in words if "@" in word and "://" not in word], host)
    _stream_out(cmd, host)
    _put(cmd, host)
    _deletes(cmd, "DELETE" if any(word in ("DELETE", "delete") for word in words[:1]) else "", urls)
    options = read_options(cmd.args, "odO", frozenset({"out", "output", "dir"}))
    if cmd.name in ("aria2c", "axel", "wget2") or options.has("dO", "download"):
        named = options.value("o", "out", "output")
        _save(cmd, named) if named else _save_named(cmd, urls[:1], options.value("d", "dir"))
    return CommandOutput(None, _REMOTE)


_FAR_DELETE = re.compile(r"(?i)(?:\A|[;'\"\s])(?:m?delete|rm|mrm|rmdir)\s|--delete\b")
_PUT = re.compile(r"(?i)\b(?:m?put|reput|send)\s+(?:-\w+\s+)*(\S+)")


def _put(cmd: Command, host: str) -> None:
    """sftp, ftp, smbclient, tftp: `put file` among the words or on standard input."""
    texts = [" ".join(cmd.args), cmd.stdin.text or ""]
    if cmd.name in ("ftp", "lftp", "sftp", "smbclient") and any(map(_FAR_DELETE.search, texts)):
        cmd.run.add("mass_delete", f"delete files on {plain(host)}", hosts=(plain(host),))
    if cmd.name in ("ftp", "lftp"):
        for script in re.findall(r"(?m)(?:^|;)[ \t]*!(.+)$", "\n".join([*cmd.args, cmd.stdin.text or ""])):
            cmd.shell(script, NOTHING)
    found = [word.strip("'\";") for text in texts for word in _PUT.findall(text)]
    if found:
        sent(
            cmd, [word.replace("~", cmd.run.places.home, 1) if word[0] == "~" else word for word in found if word], host
        )


def copy_away(cmd: Command) -> CommandOutput:
    """scp, sftp: files to `host:`."""
    ssh_options(cmd)
    operands = read_options(cmd.args, "cDFiJloPSXb").operands
    target = operands[-1] if operands else ""
    _put(cmd, target) if cmd.name == "sftp" else None
    if cmd.name == "sftp" and len(operands) < 2:
        return DARK
    if _is_remote(target):
        sent(cmd, operands[:-1], target.split(":", 1)[0].rpartition("@")[2])
        there = target.split(":", 1)[-1]
        if there.startswith("/"):
            writes(cmd, there)
    elif target:
        writes(cmd, target)
        fetched(cmd, operands[:-1], target)
    return DARK


def fetched(cmd: Command, sources: list[str], target: str) -> None:
    """Files that come from another host are its code until a person has looked."""
    path = resolve(target, cmd.scope, cmd.run)
    for name in (word.rsplit("/", 1)[-1].rpartition(":")[2] for word in sources if _is_remote(word)):
        cmd.run.files[path] = cmd.run.files[f"{path}/{name}"] = CommandOutput(None, _REMOTE)


def _is_remote(word: str) -> bool:
    return ":" in word.split("/", 1)[0] or word.startswith(("scp://", "sftp://"))


def netcat(cmd: Command) -> CommandOutput:
    options = read_options(cmd.args, "eceigIoOpPqsTVwWxX", frozenset({"exec", "sh-exec"}))
    host = options.operands[0] if options.operands else "?"
    run = cmd.run
    if options.has("ec", "exec", "sh-exec"):
        cmd.add("reverse_shell", hosts=(host,))
    elif not options.has("z"):
        run.add("network", f"connect to {host}", hosts=(host,), severity=Severity.NOTE)
    _stream_out(cmd, host)
    if "shell" in cmd.stdin.labels:
        cmd.add("reverse_shell", hosts=(host,))
    if re.match(r"(?i)\s*(?:flush|shutdown|kill|debug|delete|drop)", cmd.stdin.text or ""):
        cmd.add("database_destroy", hosts=(host,))
    return CommandOutput(None, _REMOTE)


def cloud_copy(cmd: Command) -> CommandOutput | None:
    """aws s3 cp, gsutil, rclone, az: local private files to a bucket. Other verbs are judged as infrastructure."""
    from_words = [word for word in cmd.args if not word.startswith("-") and "://" not in word]
    targets = [word for word in cmd.args if "://" in word or (cmd.name == "rclone" and re.match(r"[\w-]+:", word))]
    if targets and set(cmd.args) & {"cp", "mv", "sync", "copy", "move", "rsync", "upload", "copyto"}:
        sent(cmd, [word for word in from_words if "/" in word or "." in word or "~" in word], host_of(targets[-1]))
    if cmd.name == "rclone" and set(cmd.args) & {"sync", "delete", "purge", "move"}:
        cmd.add("sync_delete")
    return None


def keygen(cmd: Command) -> CommandOutput | None:
    """ssh-keygen: the key file that it makes; looking at one, and forgetting a host, makes none."""
    options = read_options(cmd.args, "tbCNfmOIVnDPRFJ")
    if "f" in options.values and not options.has("ylRFHBLr"):
        writes(cmd, options.values["f"])
    return None


def gist(cmd: Command) -> CommandOutput | None:
    """gh gist create, and what sends files to somebody by a code."""
    if cmd.name != "gh" or cmd.args[:2] == ["gist", "create"]:
        _stream_out(cmd, "the public")
        sent(
            cmd, [word for word in cmd.args if not word.startswith("-") and ("/" in word or "." in word)], "the public"
        )
    return None


def lookup(cmd: Command) -> CommandOutput:
    """dig, nslookup, ping: a private value inside the name leaves with the question."""
    if cmd.run.substituted & {"private", "environment"}:
        cmd.add("exfiltration")
    return CommandOutput(None, _REMOTE)


HANDLERS: Handlers = {
    "curl": curl,
    "wget": wget,
    **dict.fromkeys(
        words(
            "aria2c http https xh httpie lynx links w3m fetch axel GET ftp lftp tftp smbclient curlie wget2 transfer"
        ),
        fetch,
    ),
    **dict.fromkeys(words("scp sftp"), copy_away),
    **dict.fromkeys(words("nc ncat netcat telnet"), netcat),
    "rclone": cloud_copy,
    **dict.fromkeys(words("dig nslookup host ping"), lookup),
    "ssh-keygen": keygen,
    **dict.fromkeys(words("gh wormhole magic-wormhole croc ffsend"), gist),
}
