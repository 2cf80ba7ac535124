"""The fixed map from old module names to ours. What is not listed here is imported as it is written."""

_SAME = {
    "hermes_state": "hermes.state",
    "model_tools": "hermes.model_tools",
    "run_agent": "hermes.runtime.agent",
    "toolsets": "hermes.toolsets",
}
_WRAPPED = (
    "agent",
    "agent.auxiliary_client",
    "agent.browser_provider",
    "agent.context_engine",
    "agent.image_gen_provider",
    "agent.memory_provider",
    "agent.tool_dispatch_helpers",
    "agent.tool_guardrails",
    "batch_runner",
    "agent.transcription_provider",
    "agent.tts_provider",
    "agent.video_gen_provider",
    "agent.web_search_provider",
    "gateway",
    "gateway.config",
    "gateway.platforms",
    "gateway.platforms.base",
    "gateway.session",
    "hermes_cli",
    "hermes_cli.config",
    "hermes_cli.plugins",
    "hermes_constants",
    "hermes_logging",
    "hermes_time",
    "providers",
    "providers.base",
    "tools",
    "tools.approval",
    "tools.interrupt",
    "tools.mcp_tool",
    "tools.registry",
    "tools.url_safety",
    "toolset_distributions",
    "trajectory_compressor",
    "utils",
)

MODULES: dict[str, str] = {**_SAME, **{name: f"hermes.compat.{name}" for name in _WRAPPED}}

# What `install()` answers for scripts: names that no project is likely to have a package of.
SCRIPT_NAMES = frozenset({*_SAME, "batch_runner", "hermes_constants", "toolset_distributions", "trajectory_compressor"})

# Roots of the old tree, for a hint when an import that was left alone fails.
OLD_ROOTS = frozenset({name.partition(".")[0] for name in MODULES} | {"gateway", "hermes_cli", "cron", "cli", "utils"})
