"""The two small programs that stand for ssh and for a credential helper inside, as text. Bash and coreutils only.

They meet the runtime at a named pipe: no socket is needed, which the border forbids, and no descriptor is inherited,
which Python and others close on the way. The caller opens its pipes for both directions first, so that nobody waits in
`open`; once the runtime holds the other ends it says "go", and each side keeps the one direction it needs.
"""

import shlex

DOOR = "git-door"
NAME = r"[0-9a-f]{32}"

_MEET = r"""
meet=@MEET@
id=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
base=$meet/$id
finish() { rm -f -- "$base.ask" "$base.in" "$base.out" "$base.err" "$base.end"; }
trap finish EXIT
umask 077
[ -p "$meet/@DOOR@" ] || { echo "hermes: this session no longer answers git" >&2; exit 128; }
mkfifo -- "$base.in" "$base.out" "$base.err" "$base.end" || exit 128
exec 3<>"$base.in" 4<>"$base.out" 5<>"$base.err" 6<>"$base.end"
printf '%s\0' @ASK@ >"$base.ask" || exit 128
# A door that nobody holds open would keep us waiting: opened for both directions it does not.
exec 7<>"$meet/@DOOR@" && printf '%s\n' "$id" >&7 && exec 7>&-
read -r -t 30 go <&6 || { echo "hermes: the runtime does not answer; is it still there?" >&2; exit 128; }
exec 7>"$base.in" 8<"$base.out" 9<"$base.err" 3>&- 4>&- 5>&-
"""

_SSH = r"""
exec 3<&0
cat <&3 >&7 8<&- 9<&- 6<&- &
feeding=$!
exec 7>&- 3<&-
cat <&9 >&2 8<&- 6<&- &
complaining=$!
exec 9<&-
cat <&8
exec 8<&-
wait "$complaining"
read -r -t 10 code <&6 || code=255
kill "$feeding" 2>/dev/null
exit "$code"
"""

_CREDENTIAL = r"""
exec 7>&-
cat <&8
read -r -t 10 code <&6 || code=1
[ "$code" = 0 ] || cat <&9 >&2
exit 0
"""


def ssh_program(bash: str, meeting: str) -> str:
    """What `GIT_SSH_COMMAND` names."""
    return _program(bash, meeting, 'ssh "${GIT_PROTOCOL-}" "$@"', _SSH)


def credential_program(bash: str, meeting: str) -> str:
    """What `credential.helper` names. Only `get` is answered: nothing inside changes what the person has stored."""
    begin = '[ "$1" = get ] || exit 0\nasked=$(cat)\n'
    return _program(bash, meeting, 'credential "$asked"', _CREDENTIAL, begin)


def _program(bash: str, meeting: str, ask: str, body: str, begin: str = "") -> str:
    meet = _MEET.replace("@MEET@", shlex.quote(meeting)).replace("@DOOR@", DOOR).replace("@ASK@", ask)
    return f"#!{bash} -p\nPATH=/usr/local/bin:/usr/bin:/bin:$PATH\n{begin}{meet}{body}"
