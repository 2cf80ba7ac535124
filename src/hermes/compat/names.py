"""The fixed map from old module names to ours. What is not listed here is imported as it is written."""

_OURS = (
    "agent",
    "agent.tool_dispatch_helpers",
    "agent.tool_guardrails",
    "hermes_constants",
    "hermes_state",
    "model_tools",
    "run_agent",
    "tools",
    "tools.approval",
    "tools.registry",
    "toolsets",
)

MODULES: dict[str, str] = {name: f"hermes.compat.{name}" for name in _OURS}

# What `install()` answers for scripts: names that no project is likely to have a package of.
SCRIPT_NAMES = frozenset({"hermes_constants", "hermes_state", "model_tools", "run_agent", "toolsets"})

# Roots of the old tree, for a hint when an import that was left alone fails.
OLD_ROOTS = frozenset({name.partition(".")[0] for name in _OURS} | {"gateway", "hermes_cli", "cron", "cli", "utils"})
