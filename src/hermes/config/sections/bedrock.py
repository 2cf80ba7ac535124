"""Models on AWS Bedrock."""

from typing import Annotated, Literal

from hermes.config.section import SectionBase, key


class Guardrail(SectionBase, frozen=True):
    """A guardrail of the account, which Bedrock holds every answer to."""

    guardrail_identifier: Annotated[str, key("Its id or ARN; empty is none.")] = ""
    guardrail_version: Annotated[str, key("Its version, such as `1` or `DRAFT`.")] = ""
    stream_processing_mode: Annotated[
        Literal["sync", "async"], key("Whether words are held back until they are checked.")
    ] = "async"
    trace: Annotated[Literal["enabled", "disabled", "enabled_full"], key("Whether Bedrock tells what it found.")] = (
        "disabled"
    )


class Section(SectionBase, frozen=True):
    """Models on AWS Bedrock."""

    region: Annotated[str, key("AWS region; empty is that of AWS_REGION, else us-east-1.")] = ""
    guardrail: Annotated[Guardrail, key("A guardrail of the account.")] = Guardrail()
