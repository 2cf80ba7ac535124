"""What the runtime starts outside the confinement of a session: one table, with a reason each.

`scripts/lint_house.py` holds that nothing else is started so.
"""

from hermes.confinement.policy import Outside

STARTS: dict[str, str] = {
    "checkpoint git": "reads no configuration of the workspace and no hook, and writes to Hermes' own folders alone",
    "own git": "hooks, monitors, filters, external diffs, pagers, aliases and all that fetches are off",
    "git ssh": "the person's ssh for a git remote that the workspace had before the first command, forwarding off",
    "git credential": "`git credential fill` in no repository, for the host of such a remote",
    "container": "a client that talks to a container engine; the container is a border of its own",
    "ssh": "a client; what it runs is on another machine",
    "box model": "the model server, from Hermes' own folder",
    "external agent": "another agent that the person named as the model; it signs in as them, and we grant it nothing",
    "shell hook": "from the person's own configuration, and its program lies in no folder that commands may write",
    "login shell": "reads the person's start files before the first command, with no folder of the workspace on PATH",
    "batch process": "a process of this program that takes samples of a run; what its agents start is confined",
    "own launcher": "Hermes itself, after an update that a person asked for, to make its environment and see it start",
    "own demo": "Hermes itself, for the scene of the demo that is killed in the middle; its sessions have borders",
    "terminal program": "started by the person at the prompt",
    "job script": "a file of HERMES_HOME/scripts that a person named for a scheduled job; commands may not write there",
    "own scheduler": "Hermes itself, to run a scheduled job that a person has said yes to; its sessions have borders",
    "delivery command": "from the person's own configuration (cron.commands); it is given words on its stdin",
    "mcp server of a library": "from the person's own configuration, for a program that has no session and no border",
    "allowed outside": "a command that a person or a rule sent outside, in so many words",
}


def outside(name: str) -> Outside:
    """The start called `name` in the table; a name that is not there is a mistake in the program."""
    if name not in STARTS:
        raise ValueError(f"{name!r} is not in the table of what starts outside")
    return Outside(name)
