"""Snapshots of workspaces in a store of their own, taken before files change, and the way back to them."""

from hermes.context.checkpoints.checkpoints import Checkpoints, Touch
from hermes.context.checkpoints.model import CheckpointError, CheckpointLimits, Restored, Snapshot

__all__ = ["CheckpointError", "CheckpointLimits", "Checkpoints", "Restored", "Snapshot", "Touch"]
