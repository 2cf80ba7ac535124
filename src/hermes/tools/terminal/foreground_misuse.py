"""Foreground commands that would never return, and what to do instead."""

from hermes.tools.terminal.simple_commands import Segment, program, segments

_RUNNERS = frozenset(["npm", "pnpm", "yarn", "bun"])
_SERVING = frozenset(["dev", "start", "serve", "watch", "preview"])
_SERVERS = frozenset(["nodemon", "uvicorn", "gunicorn", "vite", "webpack-dev-server", "http-server", "live-server"])
_ASKS_ONLY = frozenset(["--help", "-h", "--version", "-V", "help", "version"])
_DETACHERS = frozenset(["nohup", "disown", "setsid"])


def misuse(command: str) -> str | None:
    """One sentence on what to do instead, or None when the command is fine in the foreground."""
    parts = segments(command)
    for position, part in enumerate(parts):
        name, args = program(part.words)
        if name in _DETACHERS and not _ASKS_ONLY.intersection(args):
            return f"{name} detaches a process that a foreground call ends with itself; {_INSTEAD}"
        if part.is_backgrounded and not _waits_later(parts[position + 1 :]):
            return f"'&' leaves a process that a foreground call ends with itself; {_INSTEAD}"
        server = _server(name, args)
        if server:
            return f"{server} runs until it is stopped; {_INSTEAD}"
    return None


_INSTEAD = (
    "start it with background=true (without '&' or nohup) and follow it with the process tool; "
    "give notify_on_complete=true for a long job, or watch_patterns for a server's ready line"
)


def _server(name: str, args: tuple[str, ...]) -> str:
    """How the long-running program is called, or "" when it is none."""
    if _ASKS_ONLY.intersection(args):
        return ""
    plain = [arg for arg in args if not arg.startswith("-")]
    if name in _SERVERS and not (name == "vite" and plain[:1] in (["build"], ["optimize"])):
        return name
    if name in _RUNNERS:
        script = plain[1] if plain[:1] == ["run"] and len(plain) > 1 else plain[0] if plain else ""
        return f"{name} {script}" if script in _SERVING else ""
    if name == "next" and plain[:1] in (["dev"], ["start"]):
        return f"next {plain[0]}"
    if _compose_up(name, plain) and not {"-d", "--detach"}.intersection(args):
        return "docker compose up"
    if name.startswith("python") and ("http.server" in args or "SimpleHTTPServer" in args):
        return "python -m http.server"
    if name in ("flask", "rails", "artisan", "hugo") and plain[:1] in (["run"], ["server"], ["serve"], ["s"]):
        return f"{name} {plain[0]}"
    return ""


def _compose_up(name: str, plain: list[str]) -> bool:
    return (name in ("docker", "podman") and plain[:1] == ["compose"] and "up" in plain) or (
        name in ("docker-compose", "podman-compose") and "up" in plain
    )


def _waits_later(rest: list[Segment]) -> bool:
    """`a & b & wait` ends by itself."""
    return any(program(part.words)[0] == "wait" for part in rest)
