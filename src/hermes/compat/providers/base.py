"""`providers.base`: what is known of a provider of models."""

from dataclasses import dataclass, field
from typing import Any

IDLE = ("models_url", "fallback_models", "fixed_temperature", "default_max_tokens", "default_aux_model")
HOOKS = ("prepare_messages", "build_extra_body", "build_api_kwargs_extras", "fetch_models")


@dataclass
class ProviderProfile:
    """A provider. Its address, protocol, key variables, aliases and headers act; the rest is kept and has no effect."""

    name: str
    api_mode: str = "chat_completions"
    aliases: tuple[str, ...] = ()
    display_name: str = ""
    description: str = ""
    signup_url: str = ""
    env_vars: tuple[str, ...] = ()
    base_url: str = ""
    models_url: str = ""
    auth_type: str = "api_key"
    supports_health_check: bool = True
    fallback_models: tuple[str, ...] = ()
    hostname: str = ""
    default_headers: dict[str, str] = field(default_factory=dict)
    fixed_temperature: Any = None
    default_max_tokens: int | None = None
    default_aux_model: str = ""

    def as_data(self) -> dict[str, Any]:
        """For the runtime, as plain values. What would have no effect is refused, so that nobody counts on it."""
        idle = [name for name in IDLE if getattr(self, name)]
        idle += [name for name in HOOKS if hasattr(type(self), name)]
        if idle:
            raise ValueError(
                f"the provider {self.name!r} sets {', '.join(idle)}, which has no effect here; leave it out"
            )
        if self.auth_type not in ("", "api_key", "none"):
            raise ValueError(
                f"the provider {self.name!r} signs in by {self.auth_type!r}; only api_key is offered to plugins"
            )
        return {
            "name": self.name,
            "api_mode": self.api_mode,
            "aliases": list(self.aliases),
            "display_name": self.display_name,
            "signup_url": self.signup_url,
            "env_vars": list(self.env_vars),
            "base_url": self.base_url,
            "hostname": self.hostname,
            "default_headers": dict(self.default_headers),
        }


__all__ = ["ProviderProfile"]
