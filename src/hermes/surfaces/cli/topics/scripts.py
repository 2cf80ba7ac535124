"""How to use Hermes in scripts and pipes.

  hermes chat -q "QUESTION"            the answer on stdout, everything else on stderr
  command | hermes chat -q "QUESTION"  what is piped is added to the question
  hermes chat -q "…" --json            one JSON event a line, the result last
  hermes -z "QUESTION"                 the same as chat -q, with only the final text

The exit code says how it ended: hermes help exit-codes. With nobody to ask, commands
that need approval are denied.
"""
