"""Random histories as a store might hold them: cut anywhere, doubled, out of order, with every kind of rubbish."""

import base64

from hypothesis import strategies as st

from hermes.types import Content, ImagePart, Message, OpaquePart, Part, TextPart, ToolCall

PIXEL = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(40)).decode()

ids = st.sampled_from(["a", "b", "c.d", "c:d", "c_d", "", "x y", "\N{SNOWMAN}", "z" * 90])
words = st.one_of(
    st.sampled_from(["", " ", "\n", "hello", "\ud800 lone", "nul\x00", "日本語", '"}]', "\u2028"]), st.text(max_size=8)
)
urls = st.sampled_from(
    [
        f"data:image/png;base64,{PIXEL}",
        f"data:image/jpg;base64,{PIXEL}",
        f"data:image/tiff;base64,{PIXEL}",
        "data:image/png;base64,???",
        "data:image/png,plain",
        "data:",
        "https://127.0.0.1/x.png",
        "https://127.0.0.1/a b",
        "file:///etc/passwd",
        "blob:0",
        "",
    ]
)
json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-5, 5), words),
    lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(words, inner, max_size=2)),
    max_leaves=4,
)
parts: st.SearchStrategy[Part] = st.one_of(
    st.builds(TextPart, text=words),
    st.builds(
        ImagePart,
        url=urls,
        media_type=st.sampled_from(["", "image/png"]),
        detail=st.sampled_from(["", "low", "odd"]),
    ),
    st.builds(
        OpaquePart,
        raw=st.one_of(
            st.just({"type": "input_audio", "input_audio": {"data": PIXEL, "format": "wav"}}),
            st.just({"type": "input_audio", "input_audio": {"data": 3, "format": "ogg"}}),
            st.just({"type": "file", "file": {"file_id": "f1"}}),
            st.just({"type": "document", "source": {"type": "odd"}}),
            st.dictionaries(words, json_values, max_size=3),
        ),
    ),
)
contents: st.SearchStrategy[Content | None] = st.one_of(st.none(), words, st.lists(parts, max_size=3).map(tuple))
calls = st.builds(
    ToolCall,
    id=ids,
    name=st.sampled_from(["read", "list", "", "bad name!", "x" * 99]),
    arguments=st.sampled_from(["{}", '{"a": 1}', '{"a": ', "[]", "", "null", '"\ud800"', "{" * 2000, '{"a":1}{"b":2}']),
)
details = st.one_of(
    st.none(),
    json_values,
    st.lists(
        st.one_of(
            st.just({"type": "thinking", "thinking": "hm", "signature": "s"}),
            st.just({"type": "thinking", "thinking": "", "signature": ""}),
            st.just({"type": "redacted_thinking", "data": "AAAA"}),
            st.just({"type": "reasoning.text", "text": "hm"}),
            json_values,
        ),
        max_size=3,
    ),
)
reasoning_items = st.one_of(
    json_values,
    st.lists(
        st.one_of(
            st.just({"type": "reasoning", "id": "r", "summary": [{"text": "hm"}, 3], "encrypted_content": "e"}),
            st.just({"type": "reasoning", "encrypted_content": 4}),
            json_values,
        ),
        max_size=3,
    ),
)
message_items = st.one_of(
    json_values,
    st.lists(
        st.one_of(
            st.just({"id": "m", "content": [{"type": "output_text", "text": "hello"}], "phase": "commentary"}),
            st.just({"id": "m", "content": "odd", "phase": 3}),
            json_values,
        ),
        max_size=2,
    ),
)
messages = st.one_of(
    st.builds(Message, role=st.sampled_from(["user", "system"]), content=contents),
    st.builds(
        Message,
        role=st.just("assistant"),
        content=contents,
        tool_calls=st.lists(calls, max_size=3).map(tuple),
        reasoning=st.one_of(st.none(), words),
        reasoning_content=st.one_of(st.none(), words),
        reasoning_details=details,
        codex_reasoning_items=reasoning_items,
        codex_message_items=message_items,
    ),
    st.builds(
        Message,
        role=st.just("tool"),
        content=contents,
        tool_call_id=ids,
        tool_name=st.just("read"),
        status=st.sampled_from([None, "ok", "failed", "unknown"]),
    ),
)
logs = st.lists(messages, max_size=12)
