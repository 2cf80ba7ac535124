"""What may be reached, and what must not be shown."""

from typing import Annotated

from hermes.config.section import SectionBase, key


class WebsiteBlocklist(SectionBase, frozen=True):
    """Sites no tool may open."""

    enabled: Annotated[bool, key("Apply the list.")] = False
    domains: Annotated[tuple[str, ...], key("Domains, with everything below them.")] = ()
    shared_files: Annotated[tuple[str, ...], key("Files with one domain a line.")] = ()


class Section(SectionBase, frozen=True):
    """What may be reached, and what must not be shown."""

    redact_secrets: Annotated[
        bool, key("Take secrets out of logs, output and the transcript.", env="HERMES_REDACT_SECRETS")
    ] = True
    allow_private_urls: Annotated[bool, key("Let web tools reach addresses of your own network.")] = False
    website_blocklist: Annotated[WebsiteBlocklist, key("Sites no tool may open.")] = WebsiteBlocklist()
