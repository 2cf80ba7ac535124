"""What all agents of the process share is released after each test: no process is left behind."""

from collections.abc import AsyncIterator

import pytest

from hermes.runtime.setup.process import shared


@pytest.fixture(autouse=True)
async def _release_shared() -> AsyncIterator[None]:
    yield
    await shared.close()
