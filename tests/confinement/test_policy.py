"""What a confinement answers, from its rules alone."""

from hermes.confinement.policy import Bind, Confinement, PathRule, outermost

CONFINED = Confinement(
    level="full",
    workspace="/srv/app",
    temp="/var/lib/t",
    rules=(
        PathRule("/tmp", "write", "temp"),
        PathRule("/run", "hidden", "socket"),
        PathRule("/srv/app", "write", "workspace"),
        PathRule("/srv/app/.git/hooks", "read", "protected"),
        PathRule("/home/me/.ssh", "hidden", "secret"),
        PathRule("/home/me/.ssh/known_hosts", "read", "system"),
    ),
)


def test_the_deepest_rule_decides() -> None:
    assert CONFINED.may_write("/srv/app/x.py")
    assert not CONFINED.may_write("/srv/app/.git/hooks/pre-commit")
    assert CONFINED.may_see("/srv/app/.git/hooks/pre-commit")
    assert not CONFINED.may_see("/home/me/.ssh/id_ed25519")
    assert CONFINED.may_see("/home/me/.ssh/known_hosts")


def test_what_no_rule_covers_may_be_read_and_not_written() -> None:
    assert CONFINED.may_see("/etc/passwd")
    assert not CONFINED.may_write("/etc/passwd")
    assert not CONFINED.may_write("/srv/application/x.py")  # begins like the workspace, and is not in it


def test_a_later_rule_for_the_same_path_wins() -> None:
    wider = CONFINED.with_root("/srv/app/.git/hooks", "a yes")

    assert wider.may_write("/srv/app/.git/hooks/pre-commit")
    assert not CONFINED.may_write("/srv/app/.git/hooks/pre-commit")  # the old one is as it was


def test_the_private_temporary_folder_is_found_where_the_runtime_keeps_it() -> None:
    assert CONFINED.seen_at("/tmp/a/b.txt") == "/var/lib/t/a/b.txt"
    assert CONFINED.seen_at("/srv/app/x.py") == "/srv/app/x.py"
    shown = CONFINED.with_root("/tmp/granted", "named")
    assert shown.seen_at("/tmp/granted/x") == "/tmp/granted/x"


def test_binds_are_added_and_roots_told_in_order() -> None:
    assert CONFINED.with_binds(Bind("/a", "/b")).binds == (Bind("/a", "/b"),)
    assert CONFINED.writable == ("/tmp", "/srv/app")
    assert [rule.path for rule in CONFINED.of_kind("protected")] == ["/srv/app/.git/hooks"]


def test_outermost_keeps_no_folder_that_lies_in_another() -> None:
    assert outermost(["/a/b", "/a", "/ab", "/a"]) == ["/a", "/ab"]
