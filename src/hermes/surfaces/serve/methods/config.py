"""Settings, tools and set-up, as a client shows and changes them."""

from typing import Any

from hermes.config.audit import section_names
from hermes.config.settings import masked
from hermes.config.write import set_key
from hermes.errors import ConfigError, HermesError
from hermes.host.live_session import LiveSession
from hermes.host.wire import frames
from hermes.host.wire.frames import WireError
from hermes.models.providers.resolve import ModelQuery, resolve
from hermes.surfaces.serve import session_facts
from hermes.surfaces.serve.method import Method, MethodCall, NoParams, OfSession
from hermes.types import JsonObject
from hermes.work_mode import checked

OF_SESSION = {  # short words for what changes in a session: the setting behind each
    "model": "model__default",
    "provider": "model__provider",
    "reasoning": "agent__reasoning_effort",
    "reasoning_effort": "agent__reasoning_effort",
}


class SettingKey(OfSession, frozen=True, kw_only=True):
    key: str = ""


class SettingValue(OfSession, frozen=True, kw_only=True):
    """Without a session it is written to config.yaml, with one it is for that session alone."""

    key: str = ""
    value: Any = None


async def get(call: MethodCall, params: SettingKey) -> JsonObject:
    live = await call.live(params.session_id, to_change=False) if params.session_id else None
    settings = live.settings if live is not None else call.server.start_for(call.client).settings
    if params.key in ("", "full"):
        return {"config": masked("", _plain(settings.mapping)), "home": str(settings.home)}
    if params.key in ("busy", "mode") and live is not None:
        return {"value": live.busy_mode if params.key == "busy" else live.work_mode}
    key = OF_SESSION.get(params.key, params.key).replace("__", ".")
    try:
        return {"key": params.key, "value": masked(key, settings.get(key))}
    except ConfigError as error:
        raise WireError(frames.BAD_VALUE, str(error)) from error


async def set_(call: MethodCall, params: SettingValue) -> JsonObject:
    if not params.key:
        raise WireError(frames.BAD_VALUE, "no key is named")
    text = params.value if isinstance(params.value, str) else _text(params.value)
    if not params.session_id:
        try:
            written = await call.server.in_thread(set_key, call.server.installation.home, params.key, text)
        except HermesError as error:
            raise WireError(frames.BAD_VALUE, str(error)) from error
        return {"key": params.key, "value": masked(params.key, written)}
    live = await call.live(params.session_id)
    await _change(live, params.key, text)
    call.server.refresh(live)
    return {"key": params.key, "value": text, "info": session_facts.info(live)}


async def _change(live: LiveSession, key: str, text: str) -> None:
    if key == "busy":
        from hermes.state.message_line import MODES  # rare

        if text not in MODES:
            raise WireError(frames.BAD_VALUE, f"{text!r} is none of: {', '.join(MODES)}")
        live.busy_mode = next(mode for mode in MODES if mode == text)
        return
    if key == "mode":
        try:
            live.work_mode = checked(text)
        except HermesError as error:
            raise WireError(frames.BAD_VALUE, str(error)) from error
        return
    flag = OF_SESSION.get(key)
    if flag is None:
        raise WireError(
            frames.BAD_VALUE, f"a session does not change {key!r}; there are: busy, mode, {', '.join(OF_SESSION)}"
        )
    await live.reconfigure(**{flag: text})


async def show(call: MethodCall, _params: NoParams) -> JsonObject:
    settings = call.server.start_for(call.client).settings
    sections = []
    for name in sorted(section_names()):
        values = _plain(settings.mapping[name])
        rows = [[key, str(masked(f"{name}.{key}", value))] for key, value in values.items()]
        sections.append({"title": name, "rows": rows})
    return {"sections": sections}


async def setup_status(call: MethodCall, _params: NoParams) -> JsonObject:
    try:
        resolve(call.server.start_for(call.client).settings, ModelQuery())
    except HermesError:
        return {"provider_configured": False}
    return {"provider_configured": True}


async def toolsets(call: MethodCall, params: OfSession) -> JsonObject:
    live = await call.live(params.session_id, to_change=False) if params.session_id else None
    start = call.server.start_for(call.client)
    settings, cwd = (live.settings, live.cwd) if live is not None else (start.settings, start.folder)
    found = await call.server.in_thread(session_facts.tools, settings, cwd, start.asked.source)
    by_set: dict[str, list[Any]] = {}
    for tool in found.tools:
        by_set.setdefault(tool.toolset, []).append(tool)
    return {
        "toolsets": [
            {
                "name": name,
                "description": (found.describe(name) or {}).get("description", ""),
                "tool_count": len(tools),
                "enabled": any(tool.state == "offered" for tool in tools),
                "tools": [tool.name for tool in tools],
            }
            for name, tools in sorted(by_set.items())
        ]
    }


def _plain(value: Any) -> Any:
    return {key: _plain(value[key]) for key in value} if hasattr(value, "keys") else value


def _text(value: Any) -> str:
    from msgspec import json  # for what is no text

    return json.encode(value).decode()


METHODS: dict[str, Method] = {
    "config.get": Method(SettingKey, get),
    "config.set": Method(SettingValue, set_),
    "config.show": Method(NoParams, show),
    "setup.status": Method(NoParams, setup_status),
    "tools.list": Method(OfSession, toolsets),
    "toolsets.list": Method(OfSession, toolsets),
}
