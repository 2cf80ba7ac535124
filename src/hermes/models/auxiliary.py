"""The runtime's own questions to a model: titles, summaries, judgements, pictures. Same ledger, own purpose."""

from collections.abc import Callable
from typing import Any

from msgspec import Struct
from msgspec.structs import replace
from msgspec.structs import replace as with_fields

from hermes.config.sections import auxiliary as auxiliary_section
from hermes.config.settings import Settings
from hermes.errors import ProviderError, UserError
from hermes.models.abilities import Abilities
from hermes.models.attempts import ClientOptions
from hermes.models.client import CallPlan, ModelClient, Notice
from hermes.models.providers.keyring import Claim
from hermes.models.providers.resolve import ModelQuery, resolve_model
from hermes.models.providers.windows import BOX
from hermes.scope import TurnScope
from hermes.seams import Clock, EventStore, HttpStream, Ids, Model, ModelRequest, RequestOptions, Unit
from hermes.types import Content, ImagePart, Message, ModelResponse, TextPart, text_of


class AuxiliaryParts(Struct, frozen=True, kw_only=True):
    """What helper calls are made with. `main` is the model of the turn, which answers where no other is configured."""

    settings: Settings
    http: HttpStream
    store: EventStore
    clock: Clock
    ids: Ids
    options: ClientOptions
    main: Callable[[], Model]


class AuxiliaryQuestion(Struct, frozen=True, kw_only=True):
    """One question: the words, the pictures they are about, and how long an answer may be."""

    task: str  # a key of the `auxiliary` section; also the purpose in the ledger
    system: str
    text: str
    images: tuple[ImagePart, ...] = ()  # as data URLs
    session_id: str | None = None
    max_tokens: int | None = None
    on_main: bool = False  # ask the main model, whatever is configured for the task
    model: str = ""  # ask this one in place of the task's own
    on_status: Callable[[Notice], None] = lambda _: None


class AuxiliaryClient:
    """Asks the model that is configured for a task (`auxiliary.<task>`), else the main one. Never any other."""

    def __init__(self, parts: AuxiliaryParts) -> None:
        self._parts = parts
        self._models: dict[str, Model] = {}

    async def ask(self, question: AuxiliaryQuestion, scope: TurnScope) -> str:
        """The answer's text; `ProviderError` when there is none in the task's time, `BudgetExceeded` at a cap."""
        return text_of((await self.respond(question, scope)).message.content).strip()

    async def respond(self, question: AuxiliaryQuestion, scope: TurnScope) -> ModelResponse:
        """The whole response. Its ledger row is written."""
        task, parts = self.task(question.task), self._parts
        attempts = parts.settings.of(auxiliary_section.Section).transient_retries + 1
        if question.model:
            task = replace(task, model=question.model)
        model = parts.main() if question.on_main else self._model(question.task, task)
        for image in question.images:
            _refuse_unfit(image, model)
        client = ModelClient(
            [model],
            parts.store,
            parts.clock,
            parts.ids,
            replace(parts.options, max_attempts=attempts, timeout_s=task.timeout),
        )
        plan = CallPlan(purpose=question.task, session_id=question.session_id, on_status=question.on_status)
        limit = scope.child(question.task, timeout_s=task.timeout)
        answer = None
        async with limit:
            answer = await client.call(_request(question, task), plan, limit)
            await parts.store.commit(answer.closing)
        if answer is None:
            raise ProviderError(f"no answer for {question.task} within {task.timeout:g} s", reason="timeout")
        return answer.response

    def client_for(self, name: str) -> ModelClient | None:
        """A client of the model that is configured for the task; None where that is the main one."""
        parts, task = self._parts, self.task(name)
        model = self._model(name, task)
        if model is parts.main():
            return None
        return ModelClient([model], parts.store, parts.clock, parts.ids, replace(parts.options, timeout_s=task.timeout))

    def window(self, name: str) -> int | None:
        """How many tokens the model of a task reads, where that is another than the main one, and known."""
        model = self._model(name, self.task(name))
        if model is self._parts.main():
            return None
        described = Abilities.of(model).described
        window = self._parts.options.windows.of(model.name, described.endpoint if described else None)
        return None if window.is_assumed else window.tokens

    def model_name(self, name: str, wanted: str = "") -> str:
        """Which model would answer for a task."""
        return wanted or self._model(name, self.task(name)).name

    def task(self, name: str) -> auxiliary_section.Task:
        """How a task is configured; `UserError` when there is none of that name."""
        found = getattr(self._parts.settings.of(auxiliary_section.Section), name, None)
        if not isinstance(found, auxiliary_section.Task):
            raise UserError(f"there is no helper task {name!r}; see the auxiliary section of config.yaml")
        return found

    def _model(self, name: str, task: auxiliary_section.Task) -> Model:
        is_main = task.provider in ("", "auto") and not task.base_url
        main = self._parts.main()
        if is_main and task.model in ("", main.name):
            return main
        key = f"{name} {task.model}"
        if key not in self._models:
            asked = ModelQuery(
                name=task.model,
                provider="" if task.provider == "auto" else task.provider,
                base_url=task.base_url,
                api_key=task.api_key,
                over=_claim(main) if is_main else None,
                is_filed=True,
            )
            self._models[key] = resolve_model(self._parts.settings, self._parts.http, asked)
        return self._models[key]


def _claim(main: Model) -> Claim:
    """Where the main model is, with the key that is sent there: another model of the same server is meant."""
    described = Abilities.of(main).described
    if described is None or main.provider == BOX:
        return Claim(provider=main.provider, base_url=main.base_url if main.provider == "custom" else "")
    endpoint, source = described.endpoint, "the key of the main model"
    return Claim(provider=main.provider, base_url=endpoint.base_url, api_key=endpoint.api_key, key_source=source)


def _refuse_unfit(image: ImagePart, model: Model) -> None:
    """Raise for a picture that would be left out of the request: an answer about nothing is worse than none."""
    from hermes.models.wires.content import MB, max_image_bytes  # otherwise loaded with the first transport

    described = Abilities.of(model).described
    limit = max_image_bytes(described.endpoint.api_mode) if described else None
    size = len(image.url.partition(",")[2])
    if limit is not None and size > limit:
        raise ProviderError(
            f"the picture has {size / MB:.1f} MB as base64, and {model.name!r} takes {limit / MB:.3g} MB at most",
            reason="image_rejected",
        )


def _request(question: AuxiliaryQuestion, task: auxiliary_section.Task) -> ModelRequest:
    extra: dict[str, Any] = dict(task.extra_body)
    options = RequestOptions(max_tokens=question.max_tokens, extra_body=extra)
    if task.reasoning_effort:
        options = with_fields(options, reasoning={"effort": task.reasoning_effort})
    content: Content = (TextPart(question.text), *question.images) if question.images else question.text
    unit = Unit([Message(role="user", content=content)])
    return ModelRequest(system=question.system, tools=(), units=(unit,), options=options)
