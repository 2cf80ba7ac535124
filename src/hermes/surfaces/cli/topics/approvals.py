"""What runs, what asks first, and what never runs.

Before a command runs, Hermes works out what it would do: what it deletes, where it
writes, whom it contacts. Harmless ones run; dangerous ones ask; a few, such as deleting
your home, never run. With nobody to ask, the answer is no.

  hermes approvals                     what was decided, and why
  hermes chat --yolo                   do not ask in this session; hard rules and your deny rules still hold
  hermes config set approvals.deny "[git push*]"       never run these
  hermes config set approvals.mode smart               let a model settle the clear cases

More: docs/approvals.md.
"""
