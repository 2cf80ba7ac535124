"""`~` is what HOME says, a place of pushd's is nobody's home, and a text that is expanded twice is not known."""

import pytest

from hermes.tools.approval import detect_dangerous_command

HOME = "/home/u/.ssh"


@pytest.mark.parametrize(
    "command",
    [
        f"HOME={HOME}; echo k >> ~/authorized_keys",
        f"export HOME={HOME}",
        f"declare HOME={HOME}; echo k >> ~/authorized_keys",
        f"HOME={HOME} bash -c 'echo k >> ~/authorized_keys'",
        f"env HOME={HOME} sh -c 'echo k >> ~/authorized_keys'",
        f"HOME={HOME}; cd; echo k >> authorized_keys",
        f"pushd {HOME}; pushd /tmp; echo k >> ~1/authorized_keys",
        f"q='$(echo {HOME})/authorized_keys'; echo k >> ${{q@P}}",
        "set -- '$(rm -rf ~/precious)'; echo ${1@P}",
    ],
)
def test_another_home_hides_nothing(command: str) -> None:
    assert detect_dangerous_command(command)[0]


@pytest.mark.parametrize(
    "command",
    ["HOME=/tmp/x npm install", "HOME=$(mktemp -d) pytest", "export HOME=$HOME", "cd ~ && ls", "x=a; echo ${x@P}"],
)
def test_a_home_for_trying_things_out_is_nobodys_business(command: str) -> None:
    assert not detect_dangerous_command(command)[0]
