"""`tools.url_safety`: whether an address is one of the open web."""

from hermes.config.load import load_settings
from hermes.tools.web.addresses import AddressRules, Refused, check_addresses, check_url, look_up


def is_safe_url(url: str) -> bool:
    """Whether `url` is http or https and its host is neither this machine nor a private network."""
    rules = AddressRules.of(load_settings().mapping)
    try:
        place = check_url(url, rules)
        check_addresses(url, place, look_up(place[1], place[2]), rules)
    except (Refused, OSError):
        return False
    return True


__all__ = ["is_safe_url"]
