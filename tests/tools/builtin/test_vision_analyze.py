"""`vision_analyze`: in a turn with a scripted provider, and alone against files and a real web server."""

import base64
import io
import json
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from hermes import AIAgent
from hermes.errors import ToolError
from hermes.testing.fakes import FixedGate
from hermes.testing.memory_store import MemoryStore
from hermes.testing.replies import calls, fault, says
from hermes.testing.server import ScriptedServer
from hermes.testing.workplace import FakeContext, MemoryEnvironment
from hermes.tools.builtin.vision_analyze import vision_analyze
from hermes.tools.registry import registry
from hermes.tools.results.pictures import EASY_BASE64, MAX_BASE64, media_type
from tests.tools.drawings import png
from tests.tools.web.site import Site, site

MakeAgent = Callable[..., AIAgent]
ASK = calls("vision_analyze", image_url="dot.png", question="What colour is it?")


@pytest.fixture
async def make_agent(tmp_path: Path) -> AsyncIterator[MakeAgent]:
    made: list[AIAgent] = []
    (tmp_path / "dot.png").write_bytes(png())

    def make(server: ScriptedServer, store: MemoryStore) -> AIAgent:
        asked: dict[str, Any] = {"model": "main", "base_url": server.base_url, "enabled_toolsets": ["vision"]}
        made.append(AIAgent(cwd=str(tmp_path), store=store, session_id="s", **asked))
        return made[-1]

    yield make
    for agent in made:
        await agent.aclose()


def purposes(store: MemoryStore) -> list[tuple[str, str | None, str]]:
    """Purpose, session and outcome of each ledger row."""
    rows = store.attempts.values()
    return [(opened.purpose, opened.session_id, closed.outcome if closed else "open") for opened, closed in rows]


# -- in a turn -------------------------------------------------------------------------------------------------------


async def test_a_picture_of_the_workspace_is_shown_to_the_model_and_told_as_data(make_agent: MakeAgent) -> None:
    store = MemoryStore()
    async with ScriptedServer([ASK, says("It is all red."), says("Red.")]) as server:
        result = await make_agent(server, store).arun_conversation("Which colour is dot.png?")
        server.assert_finished()
    assert result["final_response"] == "Red."
    (system, user) = server.requests[1].json["messages"]
    assert "never instructions" in system["content"]
    assert user["content"] == [
        {"type": "text", "text": "What colour is it?"},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{base64.b64encode(png()).decode()}"}},
    ]
    told = server.requests[2].json["messages"][-1]["content"]
    assert told.startswith('<untrusted_tool_result source="vision_analyze">')
    assert '{"success": true, "analysis": "It is all red."}' in told
    assert purposes(store) == [("turn", "s", "ok"), ("vision", "s", "ok"), ("turn", "s", "ok")]


async def test_the_model_that_is_configured_for_pictures_is_asked(make_agent: MakeAgent, hermes_home: Path) -> None:
    async with ScriptedServer([says("Red.")]) as eyes, ScriptedServer([ASK, says("Red.")]) as server:
        task = f"{{model: seeing, base_url: '{eyes.base_url}', download_timeout: 5}}"
        (hermes_home / "config.yaml").write_text(f"auxiliary: {{vision: {task}}}\n")
        await make_agent(server, MemoryStore()).arun_conversation("Which colour?")
        server.assert_finished()
    assert [request.json["model"] for request in eyes.requests] == ["seeing"]


async def test_a_model_that_refuses_pictures_is_told_and_the_turn_goes_on(make_agent: MakeAgent) -> None:
    store = MemoryStore()
    async with ScriptedServer([ASK, fault("bad_image"), says("I cannot see it.")]) as server:
        result = await make_agent(server, store).arun_conversation("Which colour?")
        server.assert_finished()
    assert result["final_response"] == "I cannot see it."
    told = server.requests[2].json["messages"][-1]["content"]
    assert "Could not process image" in told
    assert "auxiliary.vision" in told
    assert purposes(store)[1] == ("vision", "s", "failed")


async def test_a_cap_holds_for_looking(make_agent: MakeAgent, hermes_home: Path) -> None:
    (hermes_home / "config.yaml").write_text("spending: {turn_tokens: 1}\n")
    async with ScriptedServer([ASK]) as server:
        result = await make_agent(server, MemoryStore()).arun_conversation("Which colour?")
        server.assert_finished()
    assert result["turn_exit_reason"] == "spend_cap_reached"
    told = next(message["content"] for message in result["messages"] if message["role"] == "tool")
    assert "the picture was not looked at" in told


# -- alone -----------------------------------------------------------------------------------------------------------


def context(files: dict[str, bytes] | None = None, **keywords: Any) -> FakeContext:
    workplace = MemoryEnvironment()
    workplace.files.update({f"/work/{name}": data for name, data in (files or {}).items()})
    return FakeContext(environment=workplace, sight="Red.", **keywords)


def reaching(here: Site) -> FakeContext:
    """A context in which the site's own address, and no other private one, may be reached."""
    return context(settings={"web": {"private_hosts": [f"127.0.0.1:{here.port}"]}})


async def look(ctx: FakeContext, image_url: str) -> tuple[str, bytes]:
    """The kind of picture that was shown, and its bytes."""
    answer = json.loads(await vision_analyze({"image_url": image_url, "question": "What is it?"}, ctx=ctx))
    assert answer == {"success": True, "analysis": "Red."}
    ((image, question),) = ctx.looks
    assert question == "What is it?"
    head, _, body = image.url.partition(";base64,")
    assert head == f"data:{image.media_type}"
    return image.media_type, base64.b64decode(body)


def drawn(kind: str) -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (3, 3), "red").save(out, kind)
    return out.getvalue()


@pytest.mark.parametrize("kind", ["png", "jpeg", "gif", "webp"])
async def test_what_a_picture_is_shows_in_its_bytes_not_in_its_name(kind: str) -> None:
    data = drawn(kind)
    assert await look(context({"picture.txt": data}), "picture.txt") == (f"image/{kind}", data)


async def test_a_data_url_is_unpacked_whatever_it_calls_itself() -> None:
    encoded = base64.b64encode(png()).decode()
    url = f"data:image/jpeg;base64,{encoded[:20]}\n{encoded[20:].replace('+', '%2B')}"
    assert await look(context(), url) == ("image/png", png())


async def test_a_picture_comes_from_a_web_server_also_through_a_redirect() -> None:
    async with site() as here:
        assert await look(reaching(here), here.url("/png")) == ("image/png", png())
        assert await look(reaching(here), here.url("/to?where=/png")) == ("image/png", png())
    assert "text/html" not in here.headers[0]["accept"]


@pytest.mark.parametrize(
    ("image_url", "reason"),
    [
        ("notes.txt", "'notes.txt' is no picture that can be looked at; PNG, JPEG, GIF and WebP can"),
        ("dott.png", "no file 'dott.png'; there is dot.png"),
        ("folder", "is a folder"),
        ("/dev/zero", "is a device"),
        (" ", "the path is empty"),
        ("ftp://127.0.0.1/dot.png", "give an http or https URL, a path or a data URL"),
        ("data:image/png;base64,!!!!", "the data URL is damaged"),
        ("data:image/png;base64,", "the data URL holds nothing"),
        ("data:image/png,abc", "not of the form"),
        ("data:text/plain;base64,aGVsbG8=", "the data URL is no picture"),
        ("http://127.0.0.1:9/dot.png", "not public"),
        ("http://169.254.169.254/dot.png", "not public"),
    ],
)
async def test_what_cannot_be_looked_at_is_refused_with_the_reason(image_url: str, reason: str) -> None:
    ctx = context({"notes.txt": b"hello", "dot.png": png(), "folder/a.png": png()})
    with pytest.raises(ToolError, match=reason):
        await look(ctx, image_url)
    assert ctx.looks == []


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("/plain", "is no picture"),
        ("/nowhere", "404"),
        ("/huge", "larger than 50 MB"),
        ("/to?where=http://127.0.0.2/png", "not public"),
    ],
)
async def test_a_web_server_without_a_picture_is_told(path: str, reason: str) -> None:
    async with site() as here:
        with pytest.raises(ToolError, match=reason):
            await look(reaching(here), here.url(path))


async def test_a_download_that_takes_too_long_is_given_up() -> None:
    async with site() as here:
        ctx = reaching(here)
        ctx.settings = {**ctx.settings, "auxiliary": {"vision": {"download_timeout": 0.2}}}
        with pytest.raises(ToolError, match=r"within 0\.2 s"):
            await look(ctx, here.url("/drip"))
        await here.left.wait()


async def test_the_gate_is_asked_before_a_download() -> None:
    async with site() as here:
        ctx = reaching(here)
        ctx.gate = FixedGate(allowed=False)
        with pytest.raises(ToolError, match="there is no picture from"):
            await look(ctx, here.url("/png"))
    assert here.asked == []


# -- sizes -----------------------------------------------------------------------------------------------------------


async def test_more_than_fifty_megabytes_are_not_read(tmp_path: Path) -> None:
    huge = png() + bytes(50_000_000)
    with pytest.raises(ToolError, match=r"'huge.png' has 50\.0 MB; pictures of at most 50 MB"):
        await look(context({"huge.png": huge}), "huge.png")


async def test_a_large_picture_is_made_smaller_and_stays_the_same_picture() -> None:
    large = png(2400, 2200, noisy=True)
    assert len(large) * 4 / 3 > MAX_BASE64
    kind, data = await look(context({"large.png": large}), "large.png")
    assert (kind, media_type(data)) == ("image/jpeg", "image/jpeg")
    assert len(data) * 4 / 3 <= EASY_BASE64
    with Image.open(io.BytesIO(data)) as shown:
        assert (shown.width / shown.height) == pytest.approx(2400 / 2200, abs=0.01)


async def test_a_large_file_that_is_no_picture_inside_is_told() -> None:
    with pytest.raises(ToolError, match=r"'broken\.png' cannot be made smaller"):
        await look(context({"broken.png": png()[:40] + bytes(6_000_000)}), "broken.png")


async def test_without_pillow_a_large_picture_is_refused_and_a_middling_one_goes_as_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)  # as where it is not installed
    middling, large = png(1500, 1000, noisy=True), png(2400, 2200, noisy=True)
    assert len(middling) * 4 / 3 > EASY_BASE64
    assert await look(context({"middling.png": middling}), "middling.png") == ("image/png", middling)
    with pytest.raises(ToolError, match=r"needs Pillow; the user can install it with: pip install 'hermes-runtime\["):
        await look(context({"large.png": large}), "large.png")


# -- what it declares ------------------------------------------------------------------------------------------------


def test_a_call_says_which_file_it_reads() -> None:
    found = registry.get("vision_analyze")
    assert found is not None
    effects = found.traits.effects
    assert effects is not None
    ctx = context()
    assert effects({"image_url": "dot.png"}, ctx).reads == {"file:/work/dot.png"}
    for url in ("https://example.org/dot.png", "data:image/png;base64,AAAA"):
        assert effects({"image_url": url}, ctx).reads == frozenset()
