"""Real backends, for every test of a tool that runs on them."""

import pytest

from tests.tools.real_backends import container_image, docker_engine, podman_engine, sshd

__all__ = ["container_image", "docker_engine", "podman_engine", "sshd"]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests on one engine go to one worker, so that two workers do not start one each."""
    for item in items:
        for engine in {"docker_engine", "podman_engine"}.intersection(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.real)
            item.add_marker(pytest.mark.xdist_group(engine))
