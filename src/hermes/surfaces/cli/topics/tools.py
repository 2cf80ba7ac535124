"""Which tools the model gets, and adding your own.

  hermes tools list                    every tool: offered, unavailable or switched off, and why
  hermes tools disable web             switch a toolset off; enable switches it on
  hermes chat -t file,terminal         only these, this time
  hermes tools trust                   let this project's own .hermes/tools run

A Python file in tools/ of the home that registers a tool is loaded at the next start. A
session keeps the tools it began with. More: docs/tools.md.
"""
