"""What the command line asks of a conversation, checked and folded into one struct."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from click import UsageError
from msgspec import Struct

from hermes.host.agent_settings import AgentSettings
from hermes.surfaces.cli.output import is_text


class Wish(Struct, frozen=True, kw_only=True):
    """One run of `hermes chat`."""

    question: str | None = None
    image: Path | None = None
    model: str = ""
    provider: str = ""
    base_url: str = ""
    api_key: str = ""
    toolsets: tuple[str, ...] | None = None
    skills: tuple[str, ...] = ()
    disabled_toolsets: tuple[str, ...] | None = None
    max_turns: int | None = None
    max_budget: float | None = None
    resume: str | None = None
    continue_: str | None = None  # "" is the newest session
    fork: bool = False
    wait: bool = False
    source: str = "cli"
    as_json: bool = False
    quiet: bool = False
    verbose: bool = False
    preview_chars: int = 80
    pass_session_id: bool = False
    yolo: bool = False
    checkpoints: bool = False
    worktree: bool = False
    add_dirs: tuple[str, ...] = ()
    allow_hosts: tuple[str, ...] = ()
    accept_hooks: bool = False
    ignore_rules: bool = False
    ignore_user_config: bool = False
    trajectories: bool = False
    sample: bool = False
    output_schema: Any = None  # the JSON Schema, as it was read

    @property
    def agent(self) -> AgentSettings:
        """What it asks of the agent beside the settings."""
        return AgentSettings(
            source=self.source,
            pass_session_id=self.pass_session_id,
            yolo=self.yolo,
            checkpoints=self.checkpoints,
            ignore_rules=self.ignore_rules,
            quiet=self.quiet,
            output_schema=self.output_schema,
        )

    @property
    def flags(self) -> dict[str, Any]:
        """The settings that the command line overrides."""
        given = {
            "model.default": self.model or None,
            "model.provider": self.provider or None,
            "model.base_url": self.base_url or None,
            "model.api_key": self.api_key or None,
            "agent.max_turns": self.max_turns,
            "spending.session_usd": self.max_budget,
            "agent.disabled_toolsets": list(self.disabled_toolsets) if self.disabled_toolsets is not None else None,
            "hooks_auto_accept": self.accept_hooks or None,
            "toolsets": list(self.toolsets) if self.toolsets is not None else None,
        }
        return {key: value for key, value in given.items() if value is not None}


def wish_from(options: Mapping[str, Any]) -> Wish:
    """`options` as click collected them; contradictions are usage errors."""
    for name in ("model", "provider", "base_url", "toolsets", "source", "resume", "continue_"):
        if not is_text(options.get(name) or ""):
            raise UsageError(
                f"--{name.strip('_').replace('_', '-')} {options[name]!r} is not UTF-8 text; write it in UTF-8."
            )
    oneshot, query = options.get("oneshot"), options.get("query")
    if oneshot is not None and query is not None:
        raise UsageError("-z and -q both ask something; use one of them.")
    if oneshot is not None and options.get("provider") and not options.get("model"):
        raise UsageError("--provider needs --model here, so that the answer is not left to chance.")
    if options.get("verbose") and options.get("quiet"):
        raise UsageError("--verbose and --quiet contradict each other; use one of them.")
    if options.get("resume") is not None and options.get("continue_") is not None:
        raise UsageError("--resume and --continue both choose a session; use one of them.")
    for name in ("fork", "wait"):
        if options.get(name) and options.get("resume") is None and options.get("continue_") is None:
            raise UsageError(f"--{name} needs a session; name one with --resume, or take the newest with --continue.")
    if options.get("skills") and options.get("ignore_rules"):
        raise UsageError("--ignore-rules leaves skills out; leave out --skills.")
    toolsets = options.get("toolsets")
    return Wish(
        question=oneshot if oneshot is not None else query,
        image=Path(options["image"]) if options.get("image") else None,
        model=options.get("model") or "",
        provider=options.get("provider") or "",
        base_url=options.get("base_url") or "",
        toolsets=named_toolsets("--toolsets", toolsets),
        skills=tuple(dict.fromkeys(name for each in options.get("skills") or () for name in names_in(each))),
        max_turns=options.get("max_turns"),
        max_budget=options.get("max_budget"),
        resume=options.get("resume"),
        continue_=options.get("continue_"),
        fork=bool(options.get("fork")),
        wait=bool(options.get("wait")),
        source=options.get("source") or "cli",
        as_json=bool(options.get("as_json")),
        quiet=bool(options.get("quiet")) or oneshot is not None,
        verbose=bool(options.get("verbose")),
        pass_session_id=bool(options.get("pass_session_id")),
        yolo=bool(options.get("yolo")),
        checkpoints=bool(options.get("checkpoints")),
        worktree=bool(options.get("worktree")),
        add_dirs=tuple(options.get("add_dirs") or ()),
        allow_hosts=tuple(options.get("allow_hosts") or ()),
        accept_hooks=bool(options.get("accept_hooks")),
        ignore_rules=bool(options.get("ignore_rules")),
        ignore_user_config=bool(options.get("ignore_user_config")),
    )


def named_toolsets(option: str, text: str | None) -> tuple[str, ...] | None:
    """The toolsets that an option names; None when it was not given. One without a name would restrict nothing."""
    if text is None:
        return None
    if not (names := names_in(text)):
        raise UsageError(f"{option} {text!r} names no toolset; leave it out, or see: hermes tools")
    return names


def names_in(text: str) -> tuple[str, ...]:
    """The names in `a, b,c`."""
    return tuple(part.strip() for part in text.split(",") if part.strip())
