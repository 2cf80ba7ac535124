"""Skills: instructions that the model is given when you name them.

  mkdir -p ~/.hermes/skills/release    a folder, and in it a SKILL.md with the instructions
  hermes --skills release              give it to the model from the start
  /release notes for 2.0               in a conversation: with this message
  hermes config set skills.disabled release

A session keeps the skills it began with. Variables that a skill names in
required_environment_variables reach its commands. More: docs/cli.md.
"""
