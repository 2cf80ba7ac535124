"""The scripts around a command, as text: nothing here starts anything. Bash and coreutils only.

Here and elsewhere a command takes up the state the last one left, and leaves its own. A remote backend has scripts of
its own around that, for files and for what is left behind.
"""

import shlex
from collections.abc import Iterable, Mapping

INLINE_COMMAND_BYTES = 96 * 1024  # the kernel takes no argument over 128 KiB

# A backslash keeps a builtin what it is whatever aliases the snapshot brings.
_DUMP = r"{ \export -p; \declare -f; \declare -Fx; \alias -p; }"

# Arguments: what to run, where, the snapshot to take up, the one to write, the file for the folder it ends in, and
# "file" when the first is the name of a file that holds the command. A seventh is a descriptor that hears that the
# shell has begun, and is shut before anything of the command's could use it. An eighth, `program:descriptor`, is how
# `sudo` gets a password: the program prints what the descriptor holds, so it is in no file, argument or variable.
# The snapshot brings every exported variable, so the process itself is started with none: `unset` lasts, too.
# The trap saves the state however the command ends: at its end, by `exit`, by `set -e`.
COMMAND = rf"""
[ -z "$7" ] || {{ printf b >&"$7"; eval "exec $7>&-"; }}
shopt -s expand_aliases
__hermes_owner=$HERMES_CHILD_OF
[ -r "$3" ] && . "$3"
\export HERMES_CHILD_OF="$__hermes_owner"
__hermes_old=${{OLDPWD-}}
\cd -- "$2" || \exit 126
OLDPWD=$__hermes_old
__hermes_command=$1 __hermes_next=$4 __hermes_where=$5 __hermes_ask=$8
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

# Arguments: the snapshot to write, that for the runtime's own commands, the caller's PATH without the folders that the
# agent may write, the whole of it, lines that name where a session's own folders are, and files to source. Nothing in
# those folders may run here, outside the sandbox, so PATH has them only afterwards. The caller's order of PATH comes
# first and start files add to its end: an active virtualenv stays the first.
# Functions with one leading underscore are completion machinery; dumping them would slow every later command.
SNAPSHOT = f"""
__hermes_next=$1 __hermes_runtime=$2 __hermes_own=$3 __hermes_all=$4 __hermes_brought=$5
shift 5
for __hermes_file in "$@"; do [ -r "$__hermes_file" ] && . "$__hermes_file"; done
for __hermes_name in $(compgen -A function _); do
  case $__hermes_name in __*) ;; *) unset -f "$__hermes_name" ;; esac
done
unset HERMES_CHILD_OF __hermes_file __hermes_name
\\eval "$__hermes_brought"
__hermes_login=$PATH
for __hermes_goal in runtime next; do
  case $__hermes_goal in runtime) __hermes_known=$__hermes_own ;; *) __hermes_known=$__hermes_all ;; esac
  __hermes_ifs=$IFS IFS=:
  set -f
  for __hermes_folder in $__hermes_login; do
    case :$__hermes_known: in
      *:"$__hermes_folder":*) ;;
      *) __hermes_known=${{__hermes_known:+$__hermes_known:}}$__hermes_folder ;;
    esac
  done
  set +f
  IFS=$__hermes_ifs PATH=$__hermes_known
  case $__hermes_goal in
    runtime) {_DUMP} >"$__hermes_runtime" || exit ;;
    *) {_DUMP} >"$__hermes_next" ;;
  esac
done
exit
"""

ASKPASS = '#!/bin/sh\nexec cat "$HERMES_ASKPASS"\n'


def quoted(*words: str) -> str:
    """The words as one line for a shell."""
    return shlex.join(words)


def taking(names: Iterable[str]) -> str:
    """A command that exports these variables; their values come on its stdin, see `taken`."""
    return "\n".join(f"IFS= \\read -r -d '' {name}; \\export {name}" for name in names)


def taken(variables: Mapping[str, str]) -> bytes:
    """What `taking` reads. A value ends at a NUL, which no variable can hold."""
    return "".join(f"{value}\0" for value in variables.values()).encode("utf-8", "surrogateescape")


# Arguments: the call's mark, the file the folder it ends in is written to, then those of `COMMAND`.
# The first line tells that the command was begun at all; the last one tells the folder it ended in. Without the first
# the backend failed, without the last the connection did: neither is mistaken for the command's own exit code.
# What the outer shell itself says, such as "Terminated" of a command that was stopped, is nobody's output.
CALL = f"""
COMMAND={quoted(COMMAND)}
"""
CALL += """
exec 2>/dev/null
mark=$1 where=$2
shift 2
printf '%s\\n' "<$mark>"
env -i HERMES_CHILD_OF="$mark" "$BASH" --noprofile --norc -c "$COMMAND" bash "$@" 2>&1
code=$?
left() { grep -lz -- "^HERMES_CHILD_OF=$mark\\$" /proc/[0-9]*/environ 2>/dev/null; }
if [ -n "$(left)" ]; then
  sleep 0.3
  for signal in TERM KILL; do
    for file in $(left); do file=${file#/proc/}; kill -$signal "${file%/environ}" 2>/dev/null; done
    [ -z "$(left)" ] || sleep 0.3
  done
fi
printf '\\n%s' "<$mark>"
cat "$where" 2>/dev/null
rm -f "$where"
exit $code
"""

# Arguments: the mark of the call to end.
END = """
for signal in TERM KILL KILL; do
  files=$(grep -lz -- "^HERMES_CHILD_OF=$1\\$" /proc/[0-9]*/environ 2>/dev/null)
  [ -n "$files" ] || exit 0
  for file in $files; do file=${file#/proc/}; kill -$signal "${file%/environ}" 2>/dev/null; done
  sleep 0.3
done
"""

# Makes the folder of the shell's state. Arguments: where to start, files to source.
BEGIN = f"""
state=$(mktemp -d "${{TMPDIR:-/tmp}}/hermes-shell-XXXXXXXX") || exit 1
start=$1
shift
case $start in '~') start=$HOME ;; '~/'*) start=$HOME/${{start#'~/'}} ;; esac
cd -- "$start" || exit 1
start=$(pwd -P)
bash -l -c {quoted(SNAPSHOT)} bash "$state/snapshot-0" "$state/cwd" '' '' '' "$@" >/dev/null 2>&1 </dev/null
[ -s "$state/snapshot-0" ] || {{ echo 'the login shell left no snapshot' >&2; exit 1; }}
printf '%s\\0%s\\0%s\\0' "$state" "$HOME" "$start"
"""

STAT = """
[ -e "$1" ] || exit 44
stat -L -c '%f %s %.9Y' -- "$1" 2>/dev/null || stat -L -c '%f %s %Y' -- "$1" || exit 1
[ -L "$1" ] && echo link || echo plain
readlink -f -- "$1"
"""
FIRST_FILE = """
place=0
for path; do [ -f "$path" ] && { echo $place; exit; }; place=$((place + 1)); done
exit 44
"""
READ = """
[ -f "$1" ] || { [ -e "$1" ] && echo 'not a regular file' >&2 || echo 'No such file or directory' >&2; exit 1; }
if [ -n "$3" ]; then tail -c "+$(($2 + 1))" -- "$1" | head -c "$3"; else tail -c "+$(($2 + 1))" -- "$1"; fi
"""
WRITE = """
target=$(readlink -f -- "$1") && [ -n "$target" ] || target=$1
[ -d "$target" ] && { echo 'Is a directory' >&2; exit 1; }
folder=$(dirname -- "$target")
mkdir -p -- "$folder" || exit 1
mode=$2
[ -n "$mode" ] || mode=$(stat -c %a -- "$target" 2>/dev/null) || mode=$(printf '%o' $((0666 & ~$(umask))))
new=$(mktemp "$folder/.hermes-XXXXXXXX") || exit 1
cat >"$new" && chmod "$mode" "$new" && mv -fT -- "$new" "$target" || { rm -f -- "$new"; exit 1; }
"""
REMOVE = """if [ -d "$1" ] && [ ! -L "$1" ]; then rmdir -- "$1"; else rm -- "$1"; fi"""
RENAME = """mkdir -p -- "$(dirname -- "$2")" && mv -fT -- "$1" "$2" """
LIST = """cd -- "$1" && shopt -s nullglob dotglob && printf '%s\\0' *"""
