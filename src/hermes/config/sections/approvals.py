"""Who decides on commands that can do harm."""

from typing import Annotated, Literal

from hermes.config.section import SectionBase, key


class Rule(SectionBase, frozen=True):
    """A rule of your own. What is left out matches everything."""

    action: Annotated[Literal["allow", "ask", "deny"], key("What happens; `deny` always wins.")]
    name: Annotated[str, key("What the record calls it.")] = ""
    tool: Annotated[str, key("The tool it is about, with `*`.")] = "*"
    command: Annotated[str, key("First words of a command, each with `*` and `?`.")] = ""
    paths: Annotated[tuple[str, ...], key("Paths it is about, with `*`.")] = ()
    hosts: Annotated[tuple[str, ...], key("Hosts it is about, with `*`.")] = ()
    effect: Annotated[str, key('An effect as the question names it, such as "recursive delete".')] = ""
    outside: Annotated[bool, key("Of `allow` with a command: what it covers whole runs outside the border.")] = False
    match: Annotated[tuple[str, ...], key("Commands it must match, checked at the start.")] = ()
    not_match: Annotated[tuple[str, ...], key("Commands it must not match, checked at the start.")] = ()


class Containers(SectionBase, frozen=True):
    """Commands inside a container."""

    inside: Annotated[Literal["allow", "check"], key("Without host mounts: run unasked, or ask as on the host.")] = (
        "allow"
    )


class Section(SectionBase, frozen=True):
    """Who decides on commands that can do harm. With nobody to ask, they are denied."""

    mode: Annotated[
        Literal["manual", "smart", "off"],
        key("`manual` asks you, `smart` lets a model settle the clear cases, `off` allows what no hard rule forbids."),
    ] = "manual"
    timeout: Annotated[float, key("Seconds to wait for your answer; then it is a no.", gt=0)] = 60
    gateway_timeout: Annotated[float, key("The same, where the question goes to a chat.", gt=0)] = 300
    cron_mode: Annotated[Literal["deny", "approve"], key("What scheduled jobs do where they would have to ask.")] = (
        "deny"
    )
    deny: Annotated[tuple[str, ...], key("Command patterns (`*`, `?`) that are never run.")] = ()
    rules: Annotated[tuple[Rule, ...], key("Rules of your own, in order.")] = ()
    containers: Annotated[Containers, key("Commands inside a container.")] = Containers()

    @classmethod
    def fold(cls, plain: object) -> object:
        if not isinstance(plain, dict):
            return plain
        out = dict(plain)
        if out.get("mode") is False:
            out["mode"] = "off"  # YAML reads `off` as false
        if out.get("mode") in (None, ""):
            out.pop("mode", None)
        if out.get("cron_mode") in ("allow", "yes", True, "off", False):
            # The older spellings: "off" meant that the check is off.
            out["cron_mode"] = "approve"
        return out
