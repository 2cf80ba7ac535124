"""The scripts a remote backend runs: around a command, for files, for what is left behind. Bash and coreutils only."""

from hermes.tools.environments import shell

# Arguments: the call's mark, the file the folder it ends in is written to, then those of `shell.COMMAND`.
# The first line tells that the command was begun at all; the last one tells the folder it ended in. Without the first
# the backend failed, without the last the connection did: neither is mistaken for the command's own exit code.
# What the outer shell itself says, such as "Terminated" of a command that was stopped, is nobody's output.
CALL = f"""
COMMAND={shell.quoted(shell.COMMAND)}
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
bash -l -c {shell.quoted(shell.SNAPSHOT)} bash "$state/snapshot-0" "$state/cwd" "$@" >/dev/null 2>&1 </dev/null
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
