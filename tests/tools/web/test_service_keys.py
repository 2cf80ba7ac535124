"""A key of a search service goes to the service, or to an address that stands beside it, and nowhere else."""

from pathlib import Path

import pytest

from hermes.config.load import load_settings
from hermes.tools.web.providers import known_services, request_of

FIRECRAWL = next(provider for provider in known_services() if provider.name == "firecrawl")
KEY = "fc-REALKEY-0123456789"
OWN = "http://127.0.0.1:9/own"


def sent(hermes_home: Path, config: str) -> dict[str, str]:
    (hermes_home / "config.yaml").write_text(config)
    return dict(request_of(FIRECRAWL, load_settings().mapping["web"], "q", 1).headers)


@pytest.mark.parametrize("address", [f"firecrawl_url: {OWN}", f"endpoints: {{firecrawl: {OWN}}}"])
def test_an_exported_key_is_not_sent_to_an_address_of_the_settings(
    hermes_home: Path, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    monkeypatch.setenv("FIRECRAWL_API_KEY", KEY)
    assert KEY not in repr(sent(hermes_home, f"web: {{{address}}}\n"))


def test_a_key_beside_its_address_and_one_for_the_service_itself_are_sent(
    hermes_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert KEY in repr(sent(hermes_home, f"web: {{firecrawl_url: {OWN}, firecrawl_api_key: {KEY}}}\n"))
    monkeypatch.setenv("FIRECRAWL_API_KEY", KEY)
    assert KEY in repr(sent(hermes_home, ""))
    monkeypatch.setenv("FIRECRAWL_API_URL", OWN)
    assert KEY in repr(sent(hermes_home, ""))
