"""Hooks: programs of your own that are told of calls and may refuse them.

  hermes config edit                   hooks: {pre_tool_call: [{matcher: terminal, command: guard}]}
  hermes                               asks once about each program
  hermes --accept-hooks                allows all of them, this time
  hermes doctor extensions             which of them may run

A hook reads JSON on stdin and answers {"decision": "block", "reason": "..."} or nothing. Events:
pre_tool_call, post_tool_call, pre_llm_call. More: docs/cli.md.
"""
