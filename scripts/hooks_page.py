"""Write docs/hooks.md from `hermes.hook_points`: every hook and middleware, its keywords, and what its answer does.

    python scripts/hooks_page.py [--check]

With `--check` nothing is written; the exit code says whether the page is current.
"""

import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))

from hermes.hook_points import HOOK_API, HOOKS, MIDDLEWARE, HookPoint  # noqa: E402 - found by the line above

PAGE = ROOT / "docs" / "hooks.md"
HEAD = f"""# Hooks and middleware

Made from `src/hermes/hook_points.py` by `python scripts/hooks_page.py`. Version {HOOK_API} of the contract: within it
names and keywords are added, and none is taken away. Every call carries it as `telemetry_schema_version`.

A plugin listens with `ctx.register_hook(name, callback)`; see [Plugins](plugins.md). A callback is handed keywords
only, those that it names, or all of them through `**kwargs`; it may be a plain function, which runs in a thread, or a
coroutine, which runs on Hermes' own loop and must not block it: one that does for half a second is told as a failure
and shown by `hermes doctor`, though its answer counts. Ids that are not known are empty strings. What it does to its
keywords changes nothing: they are copies.

| kind | what it may do | when it fails or is late |
|---|---|---|
| policy | refuse a call, or have a person asked | the call is denied, by the plugin's name |
| transform | change a text; several compose in order | nothing is changed; told once, shown by `hermes doctor` |
| observer | look on, in order, never waited for; 1000 events may wait | told once; what did not fit is counted |

The deadline of one call is `plugins.entries.<key>.hook_timeout`, 10 s. Plugins are asked in the order of their keys,
before shell hooks.
"""
SHELL = """
## Shell hooks

Programs of your own, named in `config.yaml`:

```yaml
hooks:
  pre_tool_call:
    - matcher: terminal|write_file   # the whole name of the tool; for pre_tool_call and post_tool_call only
      command: ~/bin/guard --strict  # split like a shell would, run without one
      timeout: 20
```

Each reads one JSON object on its stdin:

```json
STDIN
```

and may answer with one on its stdout:

```json
STDOUT
```

For `pre_tool_call` a `block` refuses the call, and so does a program that fails or is late. For `pre_llm_call`
`context` is told to the model. For every other event the answer is not read.

A program runs when you have allowed it: at the prompt, with `--accept-hooks`, `HERMES_ACCEPT_HOOKS=1` or
`hooks_auto_accept: true`. Your yes is kept in `shell-hooks-allowlist.json` with a hash of the files that the command
names (programs of the system apart). When one of them changes you are asked again; until then a `pre_tool_call` hook
denies, and any other does not run.
"""
STDIN = {
    "type": "object",
    "required": ["hook_event_name", "tool_name", "tool_input", "session_id", "cwd", "extra"],
    "properties": {
        "hook_event_name": {"type": "string"},
        "tool_name": {"type": ["string", "null"]},
        "tool_input": {"type": ["object", "null"]},
        "session_id": {"type": "string"},
        "cwd": {"type": "string"},
        "extra": {"type": "object", "description": "every other keyword of the hook"},
    },
}
STDOUT = {
    "type": "object",
    "properties": {
        "decision": {"enum": ["block"]},
        "reason": {"type": "string"},
        "action": {"enum": ["block"]},
        "message": {"type": "string"},
        "context": {"type": "string"},
    },
}


def page() -> str:
    """The whole page."""
    fired = [one for one in HOOKS.values() if one.is_fired]
    names = ", ".join(f"`{one.name}`" for one in HOOKS.values() if not one.is_fired)
    idle = f"{names}: registering one is accepted and told as idle."
    parts = [HEAD, "\n## Hooks\n", *map(_hook, fired), f"\n### Known, and not fired by this version\n\n{idle}\n"]
    parts += ["\n## Middleware\n\n`ctx.register_middleware(kind, callback)`. One that fails changes nothing.\n"]
    parts += [_section(one.name, f"When: {one.when}", one.keywords, one.answer) for one in MIDDLEWARE.values()]
    stdin, stdout = json.dumps(STDIN, indent=2), json.dumps(STDOUT, indent=2)
    return "".join(parts) + SHELL.replace("STDIN", stdin).replace("STDOUT", stdout)


def _hook(one: HookPoint) -> str:
    return _section(one.name, f"{one.kind.capitalize()}, {one.when}", one.keywords, one.answer)


def _section(name: str, when: str, keywords: tuple[str, ...], answer: str) -> str:
    listed = ", ".join(f"`{keyword}`" for keyword in keywords)
    return f"\n### {name}\n\n{when}.\n\nKeywords: {listed}.\n\nAnswer: {answer}.\n"


def main() -> int:
    text = page()
    if "--check" in sys.argv[1:]:
        return 0 if PAGE.exists() and PAGE.read_text(encoding="utf-8") == text else 1
    PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
