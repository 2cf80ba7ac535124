"""The compressor's settings: the documented YAML, each key of which acts or is told as unused."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, field

from hermes.config.yaml_file import parse
from hermes.errors import UserError
from hermes.typed import convert

CHARS_PER_TOKEN = 4
NOTICE = "Some of your previous turns have been summarized to save room; the summary begins with [CONTEXT SUMMARY]:."
# Of the package's own YAML: what only its way of counting and asking needed.
_UNUSED = {
    "tokenizer": ("trust_remote_code",),
    "summarization": ("retry_delay",),
    "processing": ("num_workers", "skip_under_target", "save_over_limit", "per_trajectory_timeout"),
    "metrics": ("per_trajectory",),
}


class TokenizerPart(Struct, forbid_unknown_fields=True):
    name: str = ""  # a tokenizer.json on this machine


class SizePart(Struct, forbid_unknown_fields=True):
    target_max_tokens: int = 15_250
    summary_target_tokens: int = 750


class ProtectedPart(Struct, forbid_unknown_fields=True):
    first_system: bool = True
    first_human: bool = True
    first_gpt: bool = True
    first_tool: bool = True
    last_n_turns: int = 4


class SummaryPart(Struct, forbid_unknown_fields=True):
    model: str = ""
    base_url: str = ""
    api_key_env: str = ""
    temperature: float = 0.3
    max_retries: int = 3


class OutputPart(Struct, forbid_unknown_fields=True):
    add_summary_notice: bool = True
    summary_notice_text: str = NOTICE
    output_suffix: str = "_compressed"


class ProcessingPart(Struct, forbid_unknown_fields=True):
    max_concurrent_requests: int = 50


class MetricsPart(Struct, forbid_unknown_fields=True):
    enabled: bool = True
    output_file: str = ""


class CompressConfig(Struct, forbid_unknown_fields=True):
    """All of it."""

    tokenizer: TokenizerPart = field(default_factory=TokenizerPart)
    compression: SizePart = field(default_factory=SizePart)
    protected_turns: ProtectedPart = field(default_factory=ProtectedPart)
    summarization: SummaryPart = field(default_factory=SummaryPart)
    output: OutputPart = field(default_factory=OutputPart)
    processing: ProcessingPart = field(default_factory=ProcessingPart)
    metrics: MetricsPart = field(default_factory=MetricsPart)

    def checked(self) -> "CompressConfig":
        """Itself; `UserError` for figures that cannot be."""
        target, summary = self.compression.target_max_tokens, self.compression.summary_target_tokens
        if target <= summary:
            raise UserError(
                f"compression.target_max_tokens ({target}) has to be larger than compression.summary_target_tokens "
                f"({summary})"
            )
        if self.processing.max_concurrent_requests < 1 or self.protected_turns.last_n_turns < 0:
            raise UserError("max_concurrent_requests is at least 1 and last_n_turns at least 0")
        for name, value in (
            ("output.output_suffix", self.output.output_suffix),
            ("metrics.output_file", self.metrics.output_file),
        ):
            if "/" in value or "\0" in value:
                raise UserError(f"{name} is part of a file's name, not {value!r}; a folder is named with --output")
        return self


def read_config(file: Path | None, tell: Callable[[str], None]) -> CompressConfig:
    """The settings of a YAML file; a key that is known and does nothing here is told, an unknown one refused."""
    if file is None:
        return CompressConfig()
    tree: dict[str, Any] = {}
    for name, part in parse(file, example="compression: {target_max_tokens: 8000}", remedy="").items():
        unused = [key for key in _UNUSED.get(name, ()) if isinstance(part, Mapping) and key in part]
        for key in unused:
            tell(f"{file.name}: {name}.{key} has no effect here")
        tree[name] = {key: value for key, value in part.items() if key not in unused} if unused else part
    try:
        return convert(tree, CompressConfig)
    except msgspec.ValidationError as error:
        raise UserError(f"{str(file)!r}: {error}") from error


def counter(name: str, *, is_required: bool, tell: Callable[[str], None]) -> Callable[[str], int]:
    """Counts the tokens of a text: by a tokenizer on this machine, else about four characters each."""
    if not name:
        return _about
    file = Path(name).expanduser()
    file = file / "tokenizer.json" if file.is_dir() else file
    if not file.is_file():
        told = (
            f"there is no tokenizer at {name!r}; nothing is fetched from a hub: name a tokenizer.json on this machine"
        )
        if is_required:
            raise UserError(told)
        tell(f"{told}. Counting about {CHARS_PER_TOKEN} characters a token")
        return _about
    try:
        from tokenizers import Tokenizer  # an extra
    except ImportError as error:
        raise UserError("a tokenizer needs the extra `memory`: ./hermes --install-extra memory") from error
    try:
        made = Tokenizer.from_file(str(file))
    except Exception as error:  # the border to the library, which raises plain exceptions
        raise UserError(f"{str(file)!r} is no tokenizer: {error}") from error
    return lambda text: len(made.encode(text).ids)


def _about(text: str) -> int:
    return -(-len(text) // CHARS_PER_TOKEN)
