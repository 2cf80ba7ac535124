"""Models on AWS Bedrock."""

from typing import Annotated

from hermes.config.section import SectionBase, key


class Section(SectionBase, frozen=True):
    """Models on AWS Bedrock."""

    region: Annotated[str, key("AWS region; empty is that of AWS_REGION, else us-east-1.")] = ""
