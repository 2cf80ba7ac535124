"""Approval: what a command would do, and whether it may."""

from hermes.tools.approval.analysis import analyse
from hermes.tools.approval.detect import detect_dangerous_command, detect_hardline_command
from hermes.tools.approval.model import Analysis, Effect, Severity, SimpleCommand
from hermes.tools.approval.patterns import DANGEROUS_PATTERNS, HARDLINE_PATTERNS

__all__ = [
    "DANGEROUS_PATTERNS",
    "HARDLINE_PATTERNS",
    "Analysis",
    "Effect",
    "Severity",
    "SimpleCommand",
    "analyse",
    "detect_dangerous_command",
    "detect_hardline_command",
]
