"""`hermes_cli`: only its submodules."""
