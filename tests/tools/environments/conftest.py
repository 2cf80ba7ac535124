"""A supervisor per test."""

from collections.abc import AsyncIterator

import pytest

from hermes.tools.supervisor.supervisor import ProcessSupervisor


@pytest.fixture
async def supervisor() -> AsyncIterator[ProcessSupervisor]:
    one = ProcessSupervisor()
    yield one
    await one.close()
