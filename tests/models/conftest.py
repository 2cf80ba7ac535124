"""What the tests of models share: one HTTP client per test, closed at its end."""

from collections.abc import AsyncIterator

import pytest

from hermes.models.http.client import HttpClient


@pytest.fixture
async def http() -> AsyncIterator[HttpClient]:
    client = HttpClient()
    yield client
    await client.close()
