"""What the model is told about the way in: how its words are shown there, and what cannot be."""

from collections.abc import Mapping
from typing import Final

from hermes.config.sections.top import PlatformHint

_CHAT: Final = "You talk with the user in {name}. Keep messages short; {marks}."
_PLAIN: Final = "it shows no Markdown, so write plain text"

HINTS: Final[Mapping[str, str]] = {
    "cli": "You talk with the user in a terminal. Markdown is rendered simply; tables and long lines read badly.",
    "tui": "You talk with the user in a full-screen terminal. Markdown is rendered; very long lines read badly.",
    "cron": "This is a scheduled job: nobody is there to answer, so decide for yourself and do not ask. "
    "Your last message is what is delivered.",
    "api_server": "A program talks with you. Answer with what was asked for, without talk around it.",
    "telegram": _CHAT.format(name="Telegram", marks="bold, italics, code and links are shown, tables are not"),
    "discord": _CHAT.format(name="Discord", marks="Markdown is shown, tables are not"),
    "slack": _CHAT.format(name="Slack", marks="bold, italics, code and lists are shown, tables are not"),
    "whatsapp": _CHAT.format(name="WhatsApp", marks=_PLAIN),
    "signal": _CHAT.format(name="Signal", marks=_PLAIN),
    "sms": _CHAT.format(name="text messages", marks=_PLAIN),
    "matrix": _CHAT.format(name="Matrix", marks="Markdown is shown"),
    "mattermost": _CHAT.format(name="Mattermost", marks="Markdown is shown"),
    "email": "You talk with the user by email. Write a complete message in plain text, without Markdown.",
}


def platform_hint(platform: str, asked: Mapping[str, PlatformHint]) -> str:
    """The words for this way in, as the settings change them; empty for one that is not known."""
    words, own = HINTS.get(platform, ""), asked.get(platform)
    if own is None:
        return words
    if own.replace is not None:
        words = own.replace
    return " ".join(part for part in (words.strip(), own.append.strip()) if part)
