"""Approval: what a command would do, and whether it may."""

from hermes.tools.approval.analysis import analyse
from hermes.tools.approval.model import Analysis, Effect, Severity, SimpleCommand

__all__ = ["Analysis", "Effect", "Severity", "SimpleCommand", "analyse"]
