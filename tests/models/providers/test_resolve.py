"""Which model a name, an address, the keys and the settings mean."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from hermes.config.load import load_settings
from hermes.config.settings import Settings
from hermes.errors import ConfigError, UserError
from hermes.models.providers.catalogue import find_provider, providers
from hermes.models.providers.credentials import AuthFile
from hermes.models.providers.metadata import ModelFacts, Price, load_metadata, price_list, snapshot, update_metadata
from hermes.models.providers.resolve import ModelQuery, resolve
from hermes.models.wires.transport import make_model
from hermes.types import Usage
from tests.models.wire_cases import CONVERSE, asked


def home(tmp_path: Path, config: dict[str, Any] | None = None, **environ: str) -> Settings:
    folder = tmp_path / "home"
    folder.mkdir(exist_ok=True)
    (folder / "config.yaml").write_text(yaml.safe_dump(config or {}))
    return load_settings(folder, environ=environ)


def where(settings: Settings, **asked: Any) -> tuple[str, str, str, str]:
    """(provider, api_mode, base_url, key) of what is asked for."""
    endpoint = resolve(settings, ModelQuery(**asked)).endpoint
    return endpoint.provider, endpoint.api_mode, endpoint.base_url, endpoint.api_key


def test_the_first_key_that_is_set_decides(tmp_path: Path) -> None:
    settings = home(tmp_path, {"model": "claude-sonnet-4-6"}, ANTHROPIC_API_KEY="a", DEEPSEEK_API_KEY="d")
    assert where(settings) == ("anthropic", "anthropic_messages", "https://api.anthropic.com", "a")
    both = home(tmp_path, {"model": "x"}, OPENROUTER_API_KEY="o", ANTHROPIC_API_KEY="a")
    assert where(both)[0] == "openrouter"


def test_what_is_asked_for_wins_over_config_and_that_over_keys(tmp_path: Path) -> None:
    config = {"model": {"default": "m", "provider": "deepseek"}}
    settings = home(tmp_path, config, OPENROUTER_API_KEY="o", DEEPSEEK_API_KEY="d", ANTHROPIC_API_KEY="a")
    assert where(settings)[0] == "deepseek"
    assert where(settings, provider="anthropic", name="c")[:2] == ("anthropic", "anthropic_messages")
    assert where(settings, provider="claude", name="c")[0] == "anthropic"
    from_env = home(tmp_path, config, HERMES_INFERENCE_PROVIDER="anthropic", ANTHROPIC_API_KEY="a")
    assert where(from_env)[0] == "anthropic"


@pytest.mark.parametrize(
    ("base_url", "expected"),
    [
        ("https://api.openai.com/v1", ("openai", "codex_responses")),
        ("https://api.x.ai/v1", ("xai", "codex_responses")),
        ("https://api.anthropic.com", ("anthropic", "anthropic_messages")),
        ("https://proxy.example/anthropic", ("custom", "anthropic_messages")),
        ("https://bedrock-runtime.eu-west-1.amazonaws.com", ("bedrock", "bedrock_converse")),
        ("https://openrouter.ai/api/v1", ("openrouter", "chat_completions")),
        ("http://127.0.0.1:9/v1", ("custom", "chat_completions")),
    ],
)
def test_an_address_tells_provider_and_protocol(tmp_path: Path, base_url: str, expected: tuple[str, str]) -> None:
    assert where(home(tmp_path), name="m", base_url=base_url)[:2] == expected


def test_an_explicit_protocol_wins(tmp_path: Path) -> None:
    settings = home(tmp_path)
    asked: dict[str, Any] = {"name": "m", "base_url": "http://127.0.0.1:9/v1"}
    assert where(settings, api_mode="codex_responses", **asked)[1] == "codex_responses"
    with pytest.raises(ConfigError, match="api_mode 'odd' is not one of"):
        resolve(settings, ModelQuery(api_mode="odd", **asked))


def test_a_key_goes_only_where_it_belongs(tmp_path: Path) -> None:
    """The key of one provider is not sent to the address of another."""
    settings = home(tmp_path, {"model": "m"}, ANTHROPIC_API_KEY="secret", OPENROUTER_API_KEY="other")
    assert where(settings, base_url="https://api.deepseek.com/v1", name="m")[3] == ""
    assert where(settings, provider="anthropic", name="m", base_url="https://openrouter.ai/api/v1")[3] == ""
    assert where(settings, base_url="http://127.0.0.1:9/v1", name="m")[3] == ""


def test_a_server_of_ones_own_by_name(tmp_path: Path) -> None:
    own = {"base_url": "http://127.0.0.1:5/v1", "key_env": "MY_KEY", "model": "big", "headers": {"x-team": "a"}}
    settings = home(tmp_path, {"model": {"provider": "mine"}, "providers": {"mine": own}}, MY_KEY="k1")
    found = resolve(settings, ModelQuery()).endpoint
    assert (found.provider, found.model, found.api_key, found.headers) == ("mine", "big", "k1", {"x-team": "a"})
    listed = home(tmp_path, {"custom_providers": [{"name": "mine", **own}]}, MY_KEY="k2")
    assert where(listed, provider="mine")[3] == "k2"
    with pytest.raises(ConfigError, match="MY_KEY"):
        resolve(home(tmp_path, {"custom_providers": [{"name": "mine", **own}]}), ModelQuery(provider="mine"))


def test_a_known_provider_can_be_moved_and_slowed(tmp_path: Path) -> None:
    moved = {"anthropic": {"base_url": "http://127.0.0.1:7", "stale_timeout_seconds": 5}}
    settings = home(tmp_path, {"providers": moved}, ANTHROPIC_API_KEY="a")
    found = resolve(settings, ModelQuery(provider="anthropic", name="claude-haiku-4-5")).endpoint
    assert (found.base_url, found.limits.first_byte_s, found.limits.idle_s) == ("http://127.0.0.1:7", 5, 5)


def test_limits_come_from_the_model_then_its_provider_then_the_environment(tmp_path: Path) -> None:
    lab = {
        "base_url": "http://10.0.0.5/v1",
        "stale_timeout_seconds": 50,
        "request_timeout_seconds": 500,
        "max_tokens": 9,
    }
    slow = {"stale_timeout_seconds": 90, "request_timeout_seconds": 900, "max_tokens": 5, "context_length": 7_000}
    environ = {
        "HERMES_STREAM_READ_TIMEOUT": "33",
        "HERMES_STREAM_STALE_TIMEOUT": "44",
        "HERMES_API_CALL_STALE_TIMEOUT": "55",
        "ANTHROPIC_API_KEY": "k",
    }
    settings = home(tmp_path, {"providers": {"lab": {**lab, "models": {"slow": slow, "plain": None}}}}, **environ)

    def of(**asked: Any) -> tuple[Any, ...]:
        found = resolve(settings, ModelQuery(**asked)).endpoint
        return found.limits.first_byte_s, found.limits.idle_s, found.timeout_s, found.max_tokens, found.context_length

    assert of(provider="lab", name="slow") == (90, 90, 900, 5, 7_000)
    assert of(provider="lab", name="plain") == (50, 50, 500, 9, None)
    assert of(provider="anthropic", name="x") == (55, 33, None, None, None)
    assert of(provider="ollama", name="x")[:2] == (1800, 1800)
    with pytest.raises(ConfigError, match="HERMES_STREAM_READ_TIMEOUT should hold seconds, not 'soon'"):
        resolve(home(tmp_path, HERMES_STREAM_READ_TIMEOUT="soon", ANTHROPIC_API_KEY="k"), ModelQuery(name="m"))
    patient = home(tmp_path, {"agent": {"local_stream_stale_timeout": 77}})
    assert resolve(patient, ModelQuery(provider="ollama", name="x")).endpoint.limits.idle_s == 77


def test_an_aggregator_is_told_whom_to_ask_and_others_are_not(tmp_path: Path) -> None:
    config = {
        "provider_routing": {"only": ["a"], "ignore": ["b"], "sort": "price", "data_collection": "deny"},
        "openrouter": {"min_coding_score": 0.5, "response_cache": True, "response_cache_ttl": 60},
    }
    settings = home(tmp_path, config, OPENROUTER_API_KEY="k", ANTHROPIC_API_KEY="k")
    found = resolve(settings, ModelQuery(provider="openrouter", name="openrouter/pareto-code")).endpoint
    assert found.extra_body == {
        "provider": {"only": ("a",), "ignore": ("b",), "sort": "price", "data_collection": "deny"},
        "plugins": [{"id": "pareto-router", "min_coding_score": 0.5}],
    }
    assert found.headers["x-openrouter-cache"] == "true"
    assert found.headers["x-openrouter-cache-ttl"] == "60"
    mine = ModelQuery(provider="openrouter", name="m", routing={"provider": {"only": ["mine"]}})
    assert resolve(settings, mine).endpoint.extra_body["provider"] == {"only": ["mine"]}
    other = resolve(settings, ModelQuery(provider="anthropic", name="claude-x")).endpoint
    assert (other.extra_body, "x-openrouter-cache" in other.headers) == ({}, False)


def test_a_guardrail_of_bedrock_is_asked_for(tmp_path: Path) -> None:
    guardrail = {"guardrail_identifier": "g1", "guardrail_version": "3", "trace": "enabled"}
    found = resolve(
        home(tmp_path, {"bedrock": {"guardrail": guardrail}}), ModelQuery(provider="bedrock", name="m")
    ).endpoint
    body = make_model(found, CONVERSE.offline()._http).body(asked())
    sent = CONVERSE.check(body)["guardrailConfig"]
    assert sent == {
        "guardrailIdentifier": "g1",
        "guardrailVersion": "3",
        "streamProcessingMode": "async",
        "trace": "enabled",
    }


def test_mistakes_are_one_sentence_with_a_next_step(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="did you mean 'anthropic'"):
        resolve(home(tmp_path), ModelQuery(provider="antropic", name="m"))
    with pytest.raises(UserError, match="hermes model"):
        resolve(home(tmp_path), ModelQuery())
    with pytest.raises(UserError, match="signs in"):
        resolve(home(tmp_path), ModelQuery(provider="openai-codex", name="m"))
    with pytest.raises(UserError, match="set base_url to one like"):
        resolve(home(tmp_path), ModelQuery(provider="custom", name="m", base_url="http://[::1/v1"))


@pytest.mark.parametrize(
    ("base_url", "told"),
    [
        ("nope", "'nope' is not an http or https address, such as https://"),
        ("http:///v1", "is not an http or https address"),
        ("localhost:8000/v1", "did you mean 'http://localhost:8000/v1'?"),
        ("ftp://example.org", "is not an http or https address"),
    ],
)
def test_what_is_no_address_is_told_before_it_is_tried(tmp_path: Path, base_url: str, told: str) -> None:
    with pytest.raises(UserError, match=re.escape(told)):
        resolve(home(tmp_path), ModelQuery(name="m", base_url=base_url))
    own = {"providers": {"mine": {"base_url": base_url}}}
    with pytest.raises(UserError, match=re.escape(told)):
        resolve(home(tmp_path, own), ModelQuery(name="m", provider="mine"))


def test_several_keys_make_a_pool(tmp_path: Path) -> None:
    settings = home(tmp_path, {}, GOOGLE_API_KEY="a", GEMINI_API_KEY="b")
    AuthFile(settings.home / "auth.json").add("gemini", "c")
    assert (settings.home / "auth.json").stat().st_mode & 0o077 == 0
    found = resolve(settings, ModelQuery(provider="gemini", name="m"))
    assert found.pool is not None
    assert len(found.pool) == 3


def test_a_refused_key_rests_in_other_processes_too(tmp_path: Path) -> None:
    from hermes.errors import ProviderError

    file = AuthFile(tmp_path / "auth.json")
    for key in ("a", "b"):
        file.add("p", key)
    pool = file.pool(file.stored("p", ()), "fill_first")
    assert pool is not None
    assert pool.refused(pool.pick(), ProviderError("x", reason="billing"))
    again = AuthFile(tmp_path / "auth.json").pool(file.stored("p", ()), "fill_first")
    assert again is not None
    assert again.pick().key == "b"


def test_bedrock_takes_region_and_key_from_the_environment(tmp_path: Path) -> None:
    settings = home(tmp_path, {}, AWS_REGION="eu-west-1", AWS_BEARER_TOKEN_BEDROCK="t")
    assert where(settings, provider="bedrock", name="anthropic.claude-x") == (
        "bedrock",
        "bedrock_converse",
        "https://bedrock-runtime.eu-west-1.amazonaws.com",
        "t",
    )


def test_azure_wants_its_key_in_a_header_of_its_own(tmp_path: Path) -> None:
    settings = home(
        tmp_path, {}, AZURE_FOUNDRY_BASE_URL="https://x.openai.azure.com/openai/v1", AZURE_FOUNDRY_API_KEY="k"
    )
    found = resolve(settings, ModelQuery(provider="azure", name="m")).endpoint
    assert (found.api_key, found.headers) == ("", {"api-key": "k"})


def test_claude_gets_cache_markers_where_they_are_understood(tmp_path: Path) -> None:
    settings = home(tmp_path, {"prompt_caching": {"cache_ttl": "1h"}}, OPENROUTER_API_KEY="o", ANTHROPIC_API_KEY="a")
    for provider, name in (("openrouter", "anthropic/claude-x"), ("anthropic", "claude-x")):
        quirks = resolve(settings, ModelQuery(provider=provider, name=name)).endpoint.quirks
        assert (quirks.cache_markers, quirks.cache_ttl) == (True, "1h")
    assert not resolve(settings, ModelQuery(provider="openrouter", name="openai/gpt-5")).endpoint.quirks.cache_markers


def test_the_catalogue_is_sound() -> None:
    names = [name for entry in providers().values() for name in (entry.id, *entry.aliases)]
    assert len(names) == len(set(names))
    assert all(
        entry.base_url.startswith(("https://", "http://127.0.0.1")) for entry in providers().values() if entry.base_url
    )
    for wanted in ("openrouter", "nous", "bedrock", "lmstudio", "custom", "novita", "huggingface", "kimi-coding-cn"):
        assert find_provider(wanted) is not None


# -- facts about models ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("claude-sonnet-4-6", "claude-sonnet-4-6"),
        ("anthropic/claude-sonnet-4.5", "claude-sonnet-4-5"),
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", "claude-sonnet-4-5"),
        ("gpt-4o-2024-08-06", "gpt-4o"),
        ("openai/gpt-5-mini", "gpt-5-mini"),
        ("gpt-4", None),
        ("something-else", None),
    ],
)
def test_a_model_is_known_by_its_many_spellings(tmp_path: Path, name: str, found: str | None) -> None:
    facts = load_metadata(tmp_path).find(name)
    assert (facts.id if facts else None) == found


def test_newer_facts_replace_bundled_ones_and_bad_ones_change_nothing(tmp_path: Path) -> None:
    raw = b'{"acme": {"models": {"gpt-4o": {"limit": {"context": 9, "output": 3}, "cost": {"input": 1, "output": 2}}}}}'
    bundled = snapshot(tmp_path)
    taken = update_metadata(tmp_path, raw)
    assert len(taken.models) == 1
    assert bundled < taken.snapshot == snapshot(tmp_path)
    assert load_metadata(tmp_path).find("gpt-4o") == ModelFacts("gpt-4o", 9, 3, Price(1, 2))
    for bad in (b"{", b"[]", b'{"models": [{"id": 3}]}', b'{"a": {"models": {"x": {"limit": {"context": "y"}}}}}'):
        with pytest.raises(UserError, match="nothing was changed"):
            update_metadata(tmp_path, bad)
    assert load_metadata(tmp_path).find("gpt-4o") == ModelFacts("gpt-4o", 9, 3, Price(1, 2))


def test_prices_are_the_users_own_then_the_snapshots_else_unknown(tmp_path: Path) -> None:
    own = {"mine": {"base_url": "http://127.0.0.1:5/v1", "prices": {"big": {"input": 10, "output": 20}}}}
    price = price_list(home(tmp_path, {"providers": own}))
    usage = Usage(1_000_000, 500_000, 1_000_000)
    assert price("mine", "big", usage) == (30.0, "user_override")
    cost, source = price("anthropic", "claude-haiku-4-5", usage)
    assert cost == pytest.approx(3.6)
    assert source == "official_docs_snapshot"
    assert price("mine", "other", usage) == (None, "none")
    assert price("anthropic", "claude-haiku-4-5", Usage()) == (None, "none")
    assert price("ollama", "llama", usage) == (0.0, "none")
