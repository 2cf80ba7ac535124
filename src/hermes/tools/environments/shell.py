"""The bash around a command: it takes up the state the last one left, and leaves its own. Text only, starts nothing."""

import shlex

INLINE_COMMAND_BYTES = 96 * 1024  # the kernel takes no argument over 128 KiB

# A backslash keeps a builtin what it is whatever aliases the snapshot brings.
_DUMP = r"{ \export -p; \declare -f; \declare -Fx; \alias -p; }"

# Arguments: what to run, where, the snapshot to take up, the one to write, the file for the folder it ends in, and
# "file" when the first is the name of a file that holds the command. A seventh, `program:descriptor`, is how `sudo`
# gets a password: the program prints what the descriptor holds, so it is in no file, argument or variable.
# The snapshot brings every exported variable, so the process itself is started with none: `unset` lasts, too.
# The trap saves the state however the command ends: at its end, by `exit`, by `set -e`.
COMMAND = rf"""
shopt -s expand_aliases
__hermes_owner=$HERMES_CHILD_OF
[ -r "$3" ] && . "$3"
\export HERMES_CHILD_OF="$__hermes_owner"
__hermes_old=${{OLDPWD-}}
\cd -- "$2" || \exit 126
OLDPWD=$__hermes_old
__hermes_command=$1 __hermes_next=$4 __hermes_where=$5 __hermes_ask=$7
\[ "$6" = file ] && __hermes_command=$(<"$1")
\set --
if \[ -n "$__hermes_ask" ]; then
  sudo() {{
    HERMES_ASKPASS=/proc/$$/fd/${{__hermes_ask##*:}} SUDO_ASKPASS=${{__hermes_ask%:*}} command sudo -A "$@"
  }}
fi
\trap '\[ -z "$__hermes_ask" ] || \unset -f sudo
  {_DUMP} 2>/dev/null >"$__hermes_next" && \pwd -P 2>/dev/null >"$__hermes_where"' EXIT
\eval "$__hermes_command"
"""

# Arguments: the snapshot to write, that for the runtime's own commands, the folders of PATH that the agent may write,
# files to source. Nothing in those folders may run here, outside the sandbox, so PATH has them only afterwards.
# Functions with one leading underscore are completion machinery; dumping them would slow every later command.
SNAPSHOT = f"""
__hermes_next=$1 __hermes_runtime=$2 __hermes_others=$3
shift 3
for __hermes_file in "$@"; do [ -r "$__hermes_file" ] && . "$__hermes_file"; done
for __hermes_name in $(compgen -A function _); do
  case $__hermes_name in __*) ;; *) unset -f "$__hermes_name" ;; esac
done
unset HERMES_CHILD_OF __hermes_file __hermes_name
{_DUMP} >"$__hermes_runtime" || exit
[ -z "$__hermes_others" ] || PATH=$__hermes_others:$PATH
{_DUMP} >"$__hermes_next"
exit
"""

ASKPASS = '#!/bin/sh\nexec cat "$HERMES_ASKPASS"\n'


def quoted(*words: str) -> str:
    """The words as one line for a shell."""
    return shlex.join(words)
