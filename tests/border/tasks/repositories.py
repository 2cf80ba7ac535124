"""Git, with a remote on this disk and one behind a real ssh server."""

from tests.border.everyday import Task
from tests.border.record import code, replace, sh, write

_LOCAL = (
    "git clone -q --bare . ~/remote.git; git remote set-url origin ~/remote.git; git fetch -q; git branch -q"
    " --set-upstream-to=origin/main main"
)
_SSH = (
    "git clone -q --bare . ~/served.git; git remote set-url origin forge:served.git; git fetch -q; git branch -q"
    " --set-upstream-to=origin/main main"
)


def _git(name: str, command: str, expects: str = "", *, before: str = "", after: str = "") -> Task:
    return Task(name=f"git: {name}", steps=(sh(command),), expects=expects, before=before, after=after, needs=("git",))


def _ssh(name: str, command: str, expects: str = "", *, after: str = "") -> Task:
    return Task(
        name=f"git over ssh: {name}",
        steps=(sh(command),),
        expects=expects,
        before=_SSH,
        after=after,
        needs=("git", "ssh", "sshd"),
    )


TASKS = (
    _git("status", "git status --short && git status", "working tree clean"),
    _git("log", "git log --oneline -5", "first"),
    _git("diff", "echo more >> main.py && git diff --stat && git diff", "more"),
    _git("show", "git show --stat HEAD", "first"),
    _git("blame", "git blame main.py", "hello"),
    _git(
        "commit",
        "echo 'x = 1' > new.py && git add new.py && git commit -m 'Add new' && git log -1 --format=%s",
        "Add new",
        after='test "$(git log -1 --format=%an)" = Me',
    ),
    _git(
        "commit of everything changed",
        "echo more >> README.md && git commit -am 'More' && git status --short",
        after="git log -1 --format=%s | grep -q More",
    ),
    _git(
        "amend",
        "echo more >> README.md && git commit -q -am one && git commit -q --amend -m two && git log -1 --format=%s",
        "two",
    ),
    _git(
        "branch and switch",
        "git switch -c feature && git branch --show-current && git switch main && git branch -d feature",
        "Deleted branch",
    ),
    _git(
        "checkout -b with tracking",
        "git checkout -b side && git branch --set-upstream-to=main && git rev-parse --abbrev-ref 'side@{u}'",
        "main",
    ),
    _git(
        "merge",
        "git switch -q -c f && echo f > f && git add f && git commit -qm f && git switch -q main && git merge --no-ff"
        " -m merged f && git log -1 --format=%s",
        "merged",
    ),
    _git(
        "merge conflict settled",
        "git switch -q -c f && echo a > README.md && git commit -qam a && git switch -q main && echo b > README.md &&"
        " git commit -qam b && { git merge f || true; } && echo c > README.md && git add README.md && git commit -qm"
        " settled && git log -1 --format=%s",
        "settled",
    ),
    _git(
        "rebase",
        "git switch -q -c f && echo f > f && git add f && git commit -qm f && git switch -q main && echo m > m && git"
        " add m && git commit -qm m && git switch -q f && git rebase main && git log --format=%s -3",
        "f.*m",
    ),
    _git(
        "cherry-pick",
        "git switch -q -c f && echo f > f && git add f && git commit -qm picked && git switch -q main && git"
        " cherry-pick f && git log -1 --format=%s",
        "picked",
    ),
    _git(
        "stash", "echo more >> README.md && git stash && git stash list && git stash pop && git diff --stat", "README"
    ),
    _git("tag", "git tag -a v1 -m 'Version 1' && git tag -l && git describe", "v1"),
    _git(
        "revert",
        "echo x > x && git add x && git commit -qm x && git revert --no-edit HEAD && git log -1 --format=%s",
        "Revert",
    ),
    _git("restore", "echo broken > main.py && git restore main.py && cat main.py", "hello"),
    _git("unstage", "echo x > x && git add x && git restore --staged x && git status --short", "\\?\\? x"),
    _git("grep", "git grep -n hello", "main.py"),
    _git(
        "bisect",
        "for i in 1 2 3 4; do echo $i > n; git add n; git commit -qm $i; done; git bisect start HEAD HEAD~3 && git"
        " bisect run sh -c 'test $(cat n) -lt 3' && git bisect reset",
        "first bad commit|bisect",
    ),
    _git(
        "worktree in the workspace",
        "git worktree add -q wt -b wt && cd wt && echo w > w && git add w && git commit -qm w && git log -1 --format=%s"
        " && cd .. && git worktree remove wt",
        "w",
    ),
    _git(
        "init of a new repository",
        "mkdir fresh && cd fresh && git init -q && echo a > a && git add a && git commit -qm a && git log --oneline",
        "a",
    ),
    _git(
        "user of this repository",
        "git config user.name Other && git config user.email o@example.org && echo x > x && git add x && git commit -qm"
        " x && git log -1 --format=%an",
        "Other",
    ),
    _git("settings are read", "git config --list && git config --get user.email", "me@example.org"),
    _git("submodule status", "git submodule status && git submodule foreach 'git log --oneline -1'", "sub"),
    _git("submodule update", "git submodule update --init && cat vendor/sub/s", "s"),
    _git("archive", "git archive --format=tar.gz -o out.tgz HEAD && tar tzf out.tgz", "main.py"),
    _git(
        "patch out and in",
        "echo more >> README.md && git diff > p && git checkout -q README.md && git apply p && git diff --stat",
        "README",
    ),
    _git(
        "format-patch and am",
        "echo more >> README.md && git commit -qam more && git format-patch -1 -o /tmp/p && git switch -q -c p HEAD~1"
        " && git am /tmp/p/*.patch && git log -1 --format=%s",
        "more",
    ),
    _git("gc and fsck", "git gc -q && git fsck && git count-objects -v", "count"),
    _git(
        "reflog and reset",
        "echo x > x && git add x && git commit -qm x && git reset --hard HEAD~1 && git reflog | head -3",
        "HEAD",
    ),
    _git(
        "ignore", "echo '*.log' >> .gitignore && touch a.log && git status --short && git check-ignore a.log", "a.log"
    ),
    _git(
        "move and remove",
        "git mv main.py start.py && git rm -q package.json && git commit -qm moved && git show --stat --format=%s",
        "moved",
    ),
    _git("clone of the workspace", "git clone -q . /tmp/copy && cd /tmp/copy && git log --oneline", "first"),
    _git(
        "remote added",
        "git remote add fork https://example.invalid/fork.git && git remote -v",
        "fork",
        after="git remote get-url fork | grep -q fork.git",
    ),
    _git(
        "remote renamed and removed",
        "git remote add a https://example.invalid/a && git remote rename a b && git remote remove b && git remote",
        "origin",
    ),
    _git("fetch from a local remote", "git fetch origin && git branch -r", "origin/main", before=_LOCAL),
    _git(
        "push to a local remote",
        "echo x > x && git add x && git commit -qm x && git push origin main 2>&1",
        "main -> main",
        before=_LOCAL
        + '; sed -i \'s#"terminal": {#&"sandbox_writable": ["/home/me/remote.git"], #\' ~/.hermes/config.yaml',
        after="git --git-dir=$HOME/remote.git log -1 --format=%s main | grep -q x",
    ),
    _git(
        "pull from a local remote",
        "git pull -q && git log -1 --format=%s",
        "by a colleague",
        before=_LOCAL
        + "; git clone -q ~/remote.git ~/c; cd ~/c; echo c > c; git add c; git commit -qm 'by a colleague'; git"
        " push -q",
    ),
    _ssh("fetch", "git fetch origin && git branch -r", "origin/main"),
    _ssh("pull", "git pull && git status -sb", "main"),
    _ssh(
        "push",
        "echo x > x && git add x && git commit -qm pushed && git push origin main 2>&1",
        "main -> main",
        after="git --git-dir=$HOME/served.git log -1 --format=%s main | grep -q pushed",
    ),
    _ssh(
        "push of a new branch with tracking",
        "git switch -q -c topic && echo x > x && git add x && git commit -qm topic && git push -u origin topic 2>&1",
        "topic -> topic",
        after=(
            'git --git-dir=$HOME/served.git log -1 --format=%s topic | grep -q topic; test "$(git config'
            ' branch.topic.remote)" = origin'
        ),
    ),
    _ssh("push of a tag", "git tag v2 && git push origin v2 2>&1", "v2 -> v2"),
    _ssh("ls-remote", "git ls-remote origin", "refs/heads/main"),
    _ssh(
        "clone of the same remote",
        "git clone -q forge:served.git /tmp/again && git -C /tmp/again log --oneline",
        "first",
    ),
    _ssh(
        "deleting a remote branch of one's own",
        "git push -q origin main:refs/heads/old && git push origin --delete old 2>&1",
        "deleted",
    ),
    _ssh("remote update and prune", "git remote update --prune && git branch -a", "origin/main"),
    Task(
        name="git: a whole change by the tools",
        steps=(
            write("src/new.py", "def new() -> int:\n    return 2\n"),
            replace("src/app.py", "return 1", "return 3"),
            sh("git add -A && git commit -qm 'Change' && git show --stat --format=%s"),
        ),
        expects="new.py",
    ),
    Task(
        name="git: read from a script",
        steps=(
            code(
                "import subprocess\nprint(subprocess.run(['git', 'log', '--oneline'], capture_output=True,"
                " text=True).stdout)"
            ),
        ),
        expects="first",
    ),
)
