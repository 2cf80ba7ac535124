"""What is written to the log files."""

from typing import Annotated, Literal

from hermes.config.section import SectionBase, key


class Section(SectionBase, frozen=True):
    """What is written to the files under logs/ in the home. Secrets are taken out."""

    level: Annotated[Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"], key("Least level that is written.")] = (
        "INFO"
    )
    max_size_mb: Annotated[float, key("Size at which a file is set aside, MB.", gt=0)] = 5
    backup_count: Annotated[int, key("Files set aside and kept.", ge=0)] = 3

    @classmethod
    def fold(cls, plain: object) -> object:
        if isinstance(plain, dict) and isinstance(plain.get("level"), str):
            return {**plain, "level": plain["level"].upper()}
        return plain
