"""Going on with, finding and keeping what was said.

  hermes --continue                    go on with the newest session; --continue NAME with one of that title
  hermes --resume SESSION              go on with this one: its id, the beginning of it, or its title
  hermes --resume SESSION --fork       go on in a copy of it; the original stays as it is
  hermes sessions                      pick one: type to search, Enter takes it
  hermes sessions search "two words"   find what was said, in all of them
  hermes sessions show SESSION         read one; --tools with results, --json for a script
  hermes sessions export FILE          as JSON lines; --format md to read, --redact without secrets
  hermes sessions prune --older-than 30d --dry-run
  hermes sessions repair               mend what a crash or a bad disk left

Every step is stored before the next one begins, so a session that was killed goes on
where it was. One process works on a session at a time; another one is told, with exit
code 8, or waits for it with --wait. Sessions are never deleted by themselves, unless
sessions.auto_prune is set. More: docs/sessions.md.
"""
