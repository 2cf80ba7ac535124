"""The base classes of what plugins register and nothing uses yet, and of web search, which is used."""

from abc import ABC, abstractmethod
from typing import Any, Final


class NamedProvider(ABC):
    """A service that a plugin brings."""

    @property
    @abstractmethod
    def name(self) -> str:
        """A short id, as settings name it."""

    @property
    def display_name(self) -> str:
        """For people."""
        return self.name

    def is_available(self) -> bool:
        """Whether it can be used: keys and packages are there. Asks no server."""
        return True

    def get_setup_schema(self) -> dict[str, Any]:
        """What its set-up asks for."""
        return {}


class WebSearchProvider(NamedProvider):
    """A search service: `search` gives `{"success": True, "data": {"web": [{title, url, description}]}}`."""

    def supports_search(self) -> bool:
        return True

    def supports_extract(self) -> bool:
        return False

    def supports_crawl(self) -> bool:
        return False

    def search(self, query: str, limit: int = 5) -> Any:
        """Pages about something: the object above, or a list of results."""
        raise NotImplementedError(f"{self.name} does not search")

    def extract(self, urls: list[str], **keywords: Any) -> Any:
        """The text of pages."""
        raise NotImplementedError(f"{self.name} reads no pages")

    def crawl(self, url: str, **keywords: Any) -> Any:
        """The pages of a site."""
        raise NotImplementedError(f"{self.name} reads no sites")


class ImageGenProvider(NamedProvider):
    """Makes pictures."""

    def generate(self, prompt: str, **keywords: Any) -> Any:
        raise NotImplementedError(f"{self.name} makes no pictures")


class VideoGenProvider(NamedProvider):
    """Makes films."""

    def generate(self, prompt: str, **keywords: Any) -> Any:
        raise NotImplementedError(f"{self.name} makes no films")


class TTSProvider(NamedProvider):
    """Speaks."""

    def synthesize(self, text: str, output_path: str, **keywords: Any) -> Any:
        raise NotImplementedError(f"{self.name} does not speak")


class TranscriptionProvider(NamedProvider):
    """Writes down what is said."""

    def transcribe(self, file_path: str, **keywords: Any) -> Any:
        raise NotImplementedError(f"{self.name} does not listen")


class BrowserProvider(NamedProvider):
    """Brings a browser."""

    def create_session(self, task_id: str, **keywords: Any) -> Any:
        raise NotImplementedError(f"{self.name} has no browser")

    def close_session(self, session_id: str) -> Any:
        raise NotImplementedError(f"{self.name} has no browser")


class DashboardAuthProvider(NamedProvider):
    """Knows who may use the dashboard."""


class SecretSource(ABC):
    """Where secrets come from beside .env."""

    @property
    @abstractmethod
    def name(self) -> str:
        """A short id in small letters."""

    def fetch(self, *names: str) -> dict[str, str]:
        """The secrets it has; it neither raises nor asks anybody."""
        return {}


BASES: Final[dict[str, type]] = {
    "web_search_provider": WebSearchProvider,
    "image_gen_provider": ImageGenProvider,
    "video_gen_provider": VideoGenProvider,
    "tts_provider": TTSProvider,
    "transcription_provider": TranscriptionProvider,
    "browser_provider": BrowserProvider,
    "dashboard_auth_provider": DashboardAuthProvider,
    "secret_source": SecretSource,
}
