"""`agent.tool_guardrails`."""

from hermes.runtime.guardrails import GuardrailConfig as ToolCallGuardrailConfig
from hermes.runtime.guardrails import GuardrailDecision as ToolGuardrailDecision
from hermes.runtime.guardrails import Guardrails as ToolCallGuardrailController

__all__ = ["ToolCallGuardrailConfig", "ToolCallGuardrailController", "ToolGuardrailDecision"]
