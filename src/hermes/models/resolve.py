"""Which model a name, an address and the settings mean."""

from hermes.config.sections import model as model_section
from hermes.config.settings import Settings
from hermes.errors import UserError
from hermes.models.chat_completions import chat_completions
from hermes.models.endpoint import Endpoint
from hermes.seams import HttpStream, Model

NO_MODEL = (
    "no model is configured: give --model and --base-url, or set model.default and model.base_url in config.yaml "
    "(hermes config set model.default NAME)"
)


def resolve_model(
    settings: Settings, http: HttpStream, *, name: str = "", base_url: str = "", provider: str = "", api_key: str = ""
) -> Model:
    """The model to call; what is given here wins over what is configured."""
    section = settings.of(model_section.Section)
    name = name or section.default
    base_url = base_url or section.base_url or settings.lookup("OPENAI_BASE_URL") or ""
    if not name or not base_url:
        raise UserError(NO_MODEL)
    key = api_key or section.api_key or settings.lookup("OPENAI_API_KEY") or ""
    endpoint = Endpoint(base_url=base_url, model=name, provider=provider or section.provider or "custom", api_key=key)
    return chat_completions(endpoint, http)
