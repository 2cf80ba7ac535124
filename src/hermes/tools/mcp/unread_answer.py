"""An answer that cannot be read, as an error of the call that it answers, which would wait for it until it is late."""

import json
import re

ENDS = 4096  # bytes at each end of an answer in which its id is looked for; one of 80 MB is not gone through
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*"|[{}\[\]]')
_ID = re.compile(rb'"id"\s*:\s*(\d{1,18}|"[^"\\]{1,200}")')
_LAST_ID = re.compile(_ID.pattern + rb"[^{}\[\]]*\}\s*$")
_KEY = re.compile(rb"\s*:")


def refusal(head: bytes, tail: bytes, why: str) -> bytes | None:
    """The error that stands for an answer with these two ends; None for what answers no call that can be told.

    Only what the answer itself says counts: an id somewhere in a result is not the id of a call.
    """
    keys = _own_keys(head[:ENDS])
    if b'"id"' in keys:
        found = _ID.match(head, keys[b'"id"'])
    else:
        found = _LAST_ID.search(tail[-ENDS:]) if len(head) > ENDS else None
    is_protocol = b'"jsonrpc"' in keys or b'"jsonrpc"' in tail[-ENDS:]
    if found is None or not is_protocol or b'"method"' in keys:
        return None
    return b'{"jsonrpc":"2.0","id":%b,"error":{"code":-32603,"message":%b}}' % (found[1], json.dumps(why).encode())


def unreadable(parser_said: str) -> str:
    """What is wrong with an answer, in one sentence."""
    if "recursion limit" in parser_said:
        return "the answer is nested too deep to be read"
    return "the answer is not as the protocol wants it, and cannot be read"


def _own_keys(head: bytes) -> dict[bytes, int]:
    """The keys of the object that `head` begins, as far as it reaches, and where each stands."""
    keys: dict[bytes, int] = {}
    depth = 0
    for token in _TOKEN.finditer(head):
        match token[0]:
            case b"{" | b"[":
                depth += 1
            case b"}" | b"]":
                depth -= 1
            case word if depth == 1 and _KEY.match(head, token.end()):
                keys[word] = token.start()
    return keys
