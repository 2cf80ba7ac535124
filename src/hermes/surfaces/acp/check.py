"""Whether an editor could use this installation, and what to put into its settings."""

import json
import os
import shutil
import sys
from importlib import import_module

from hermes import __version__
from hermes.config import paths
from hermes.errors import HermesError
from hermes.host.command_word import as_typed
from hermes.host.installation import Installation
from hermes.models.providers.resolve import ModelQuery, resolve

EDITORS = "docs/editors.md says where it goes in Zed, JetBrains and Neovim."


def check(installation: Installation, *, is_verbose: bool) -> int:
    """One line; with `is_verbose` what an editor would see."""
    write = sys.stdout.write
    try:
        found = resolve(installation.settings(), ModelQuery())
        model = f"{found.endpoint.provider}:{found.endpoint.model}"
    except HermesError as error:
        model = ""
        write(f"OK: hermes-acp {__version__} starts; no model is set up yet ({error})\n")
    else:
        write(f"OK: hermes-acp {__version__}, model {model}\n")
    if is_verbose:
        from hermes.host.command import available
        from hermes.surfaces.acp.editor_modes import MODES

        write(f"command: {json.dumps(command())}\n")
        write(f"home: {installation.home}\n")
        write(f"model: {model or as_typed('none; editors offer to run hermes acp --setup', os.environ)}\n")
        write(f"modes: {', '.join(mode.id for mode in MODES)}\n")
        write(f"commands: {', '.join(f'/{name}' for name in available('editor'))}\n")
    return 0


def set_up(installation: Installation, *, may_ask: bool) -> int:
    """Show what an editor's settings need. A model is chosen with `hermes setup`, which is run first where none is."""
    try:
        resolve(installation.settings(), ModelQuery())
    except HermesError as error:
        if not may_ask:
            sys.stderr.write(as_typed(f"no model is set up yet ({error}); run: hermes setup\n", os.environ))
            return 1
        code: int = import_module("hermes.surfaces.cli.main").main(["setup"])  # by name: another surface
        if code:
            return code
    program, *args = command()
    is_usual = installation.home == paths.root_home({"HOME": os.environ.get("HOME", "")})
    env = {} if is_usual else {"HERMES_HOME": str(installation.home)}
    server = {"Hermes": {"command": program, "args": args, "env": env}}
    sys.stdout.write(f"Put this into your editor's settings:\n{json.dumps({'agent_servers': server}, indent=2)}\n")
    sys.stdout.write(f"{EDITORS}\n")
    return 0


def command() -> list[str]:
    """How an editor starts this installation."""
    if launcher := os.environ.get("HERMES_LAUNCHER"):
        return [launcher, "acp"]
    beside = os.path.join(os.path.dirname(sys.executable), "hermes-acp")  # noqa: PTH118, PTH120 - words, not files
    found = shutil.which("hermes-acp") or shutil.which(beside)
    # -P: the folder that an editor starts it in is no place for modules.
    return [found] if found else [sys.executable, "-P", "-m", "hermes.surfaces.acp.main"]
