"""A fake of the byte seam: answers from a list, no socket."""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence

from hermes.models.http_errors import HttpError, HttpStatusError
from hermes.scope import TurnScope
from hermes.seams import DEFAULT_LIMITS, Body, HttpLimits, whole


class CannedHttp:
    """`HttpStream` that answers each request with the next entry: chunks of a body, or a status outside 2xx.

    An error in the place of an answer or among its chunks is raised there. A `None` among the chunks stalls until the
    request is left; `sent` holds the bodies that were posted.
    """

    def __init__(self, *answers: Sequence[bytes | HttpError | None] | HttpError | int) -> None:
        self._answers = list(answers)
        self.sent: list[bytes] = []
        self.closed_early = 0

    async def post_stream(
        self, url: str, headers: Mapping[str, str], body: Body, scope: TurnScope, limits: HttpLimits = DEFAULT_LIMITS
    ) -> AsyncGenerator[bytes, None]:
        self.sent.append(whole(body))
        answer = self._answers.pop(0)
        if isinstance(answer, int):
            raise HttpStatusError(url, answer, {}, b"")
        if isinstance(answer, HttpError):
            raise answer
        is_whole = False
        try:
            for chunk in answer:
                if chunk is None:
                    await asyncio.Event().wait()
                elif isinstance(chunk, HttpError):
                    raise chunk
                else:
                    yield chunk
            is_whole = True
        finally:
            self.closed_early += not is_whole

    async def close(self) -> None:
        self._answers.clear()
