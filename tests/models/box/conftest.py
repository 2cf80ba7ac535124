"""The real box: its weights, where they are installed, and one server for all tests that need it."""

import os
from pathlib import Path

import pytest

from hermes.models.box.files import BUNDLED, bundled_weights, has_engine


@pytest.fixture(scope="session")
def weights() -> Path:
    """The weights of the box. `HERMES_TEST_BOX` names the home that has them; ./check sets it."""
    if not has_engine():
        pytest.skip("xllamacpp is not installed: ./hermes --install-extra local")
    named = os.environ.get("HERMES_TEST_BOX", "")
    homes = [Path(named)] if named else []
    homes += [Path(user) / ".hermes" for name in ("HERMES_CHECK_USER_HOME", "HOME") if (user := os.environ.get(name))]
    for home in homes:
        found = bundled_weights(home)
        if found is not None:
            return found
    pytest.skip(f"{BUNDLED} is not installed: ./hermes --install-extra local")
