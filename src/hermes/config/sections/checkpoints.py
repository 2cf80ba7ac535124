"""Snapshots of the workspace, to roll back to."""

from typing import Annotated

from hermes.config.section import SectionBase, key


class Section(SectionBase, frozen=True):
    """Snapshots of the workspace, to roll back to."""

    enabled: Annotated[bool, key("Keep what files were before they are changed.")] = True
    max_snapshots: Annotated[int, key("Turns of a workspace whose snapshots are kept.", ge=1)] = 200
    max_total_size_mb: Annotated[int, key("Space for all of them, MB.", ge=1)] = 500
    max_file_size_mb: Annotated[int, key("Larger files are left out, MB.", ge=1)] = 10
    auto_prune: Annotated[bool, key("Delete old ones without being asked.")] = True
    retention_days: Annotated[int, key("Days after which one is old.", ge=1)] = 7
    delete_orphans: Annotated[bool, key("Delete snapshots of workspaces that are gone.")] = True
    min_interval_hours: Annotated[float, key("Hours between two cleanings.", ge=0)] = 24
