"""What people type for what is not done by a command of `hermes`, and what does it."""

ELSEWHERE = {
    **dict.fromkeys(
        ("update", "upgrade"),
        " In its checkout: git pull; the next start brings the environment up to date. More: hermes help update",
    ),
    "uninstall": " Delete the checkout and HERMES_HOME (~/.hermes): nothing is anywhere else.",
}
