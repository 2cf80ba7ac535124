"""The fakes that touch no world behave as what they stand for."""

import pytest

from hermes.seams import Environment
from hermes.testing.workplace import MemoryEnvironment
from tests.tools.environments.conformance import FileConformance


class TestMemoryEnvironment(FileConformance):
    @pytest.fixture
    def environment(self) -> Environment:
        return MemoryEnvironment()

    async def test_a_folder_moves_with_all_that_is_in_it(self) -> None:
        environment = MemoryEnvironment()
        environment.files["/work/a/b/c"] = b"1"
        await environment.write("ab", b"2", mode=0o600)
        await environment.rename("a", "d/e")
        await environment.rename("ab", "d/ab")
        assert environment.files == {"/work/d/e/b/c": b"1", "/work/d/ab": b"2"}
        assert await environment.list_dir(".") == ["d"]
        assert await environment.list_dir("d") == ["ab", "e"]
