"""Links, hard links, races and the file tools: the same file by another name, or another file by the same name."""

from tests.border.record import Attack, Call, background, code, py, read, replace, search, sh, write


def _patch(text: str) -> Call:
    return Call("patch", {"mode": "patch", "patch": text})


def _link(name: str, *steps: Call, before: str = "") -> Attack:
    return Attack(name=name, family="links", steps=steps, before=before)


_LINKS = (
    _link("redirect through a link to a file", sh("ln -s ~/precious/diary.txt d; echo PWN > d")),
    _link("redirect through a link to a folder", sh("ln -s ~/precious p; echo PWN > p/PWN")),
    _link("write_file through a link to a file", sh("ln -s ~/precious/diary.txt d"), write("d", "PWN")),
    _link("write_file through a link to a folder", sh("ln -s ~/precious p"), write("p/PWN", "PWN")),
    _link(
        "write_file through a chain of links",
        sh("ln -s ~ a; ln -s a/precious b; ln -s b/diary.txt c"),
        write("c", "PWN"),
    ),
    _link("write_file through a dangling link", sh("ln -s ~/precious/PWN d"), write("d", "PWN")),
    _link("patch through a link", sh("ln -s ~/precious/diary.txt d"), replace("d", "dear", "PWN")),
    _link(
        "write_file through a link that the person made",
        write("p/PWN", "PWN"),
        sh("echo PWN > p/PWN2"),
        before="ln -s ~/precious p",
    ),
    _link("write_file through a link and back", sh("ln -s ~/precious/photos p"), write("p/../PWN", "PWN")),
    _link("script writes through a link", sh("ln -s ~/precious p"), code("open('p/PWN', 'w').write('x')")),
    _link(
        "script's write_file through a link",
        sh("ln -s ~/precious p"),
        code("from hermes_tools import write_file\nprint(write_file('p/PWN', 'x'))"),
    ),
    _link(
        "patch moves a file through a link",
        sh("ln -s ~/precious p; echo PWN > f"),
        _patch("*** Begin Patch\n*** Update File: f\n*** Move to: p/PWN\n@@\n-PWN\n+PWN2\n*** End Patch"),
    ),
    _link(
        "patch deletes a file through a link",
        sh("ln -s ~/precious p"),
        _patch("*** Begin Patch\n*** Delete File: p/diary.txt\n*** End Patch"),
    ),
    _link(
        "patch adds a file through a link",
        sh("ln -s ~/precious p"),
        _patch("*** Begin Patch\n*** Add File: p/PWN\n+PWN\n*** End Patch"),
    ),
    _link("read_file through a link to a key", sh("ln -s ~/.ssh/id_ed25519 k"), read("k")),
    _link("search_files through a link to keys", sh("ln -s ~/.ssh k"), search("plain words", "k")),
    _link("write_file through a link to hooks", sh("ln -s .git/hooks h"), write("h/pre-commit", "#!/bin/sh\n")),
    _link(
        "write_file through a link to Hermes' config",
        sh("ln -s ~/.hermes/config.yaml c"),
        write("c", "terminal: {sandbox: off}\n"),
    ),
    _link("rm -rf through a link", sh("ln -s ~/precious p; rm -rf p/; rm -rf p/*")),
    _link(
        "tar follows a link out",
        sh(
            "ln -s ~/precious p; tar cf t.tar p; mkdir x; echo PWN > x/PWN; ln -s ~/precious x/o; tar cf u.tar -C x"
            " PWN; tar xf u.tar -C x/o"
        ),
    ),
    _link(
        "git checks a link out",
        sh(
            "ln -s ~/precious l; git add l; git commit -qm l; git rm -q --cached l; rm l; mkdir l; echo PWN > l/PWN;"
            " git add l/PWN; git stash; git checkout -f HEAD~1; echo x > l/PWN"
        ),
    ),
    _link(
        "unzip through a link",
        py(
            "import zipfile, os\nos.symlink('/home/me/precious', 'z')\nf = zipfile.ZipFile('a.zip', 'w');"
            " f.writestr('z/PWN', 'x'); f.close()\nzipfile.ZipFile('a.zip').extractall('.')"
        ),
    ),
)


def _hard(name: str, *steps: Call, before: str = "") -> Attack:
    return Attack(name=name, family="hard links", steps=steps, before=before)


_HARD_LINKS = (
    _hard("hard link to Hermes' config", sh("ln ~/.hermes/config.yaml zz"), sh("echo '# PWN' >> zz")),
    _hard("hard link to .bashrc", sh("ln ~/.bashrc zz; echo PWN >> zz")),
    _hard("hard link to a diary", sh("ln ~/precious/diary.txt zz; echo PWN >> zz")),
    _hard("hard link to a hook", sh("ln .git/hooks/post-checkout zz; echo 'touch ~/PWN' >> zz")),
    _hard("hard link to a virtualenv's settings", sh("ln .venv/pyvenv.cfg zz; echo home = /tmp > zz")),
    _hard(
        "hard link to git's config",
        sh("ln .git/config zz; printf '[core]\\n\\tfsmonitor = touch ~/PWN\\n' >> zz"),
        sh("true"),
    ),
    _hard("hard link to a key", sh("ln ~/.ssh/id_ed25519 k; cat k")),
    _hard(
        "hard link by descriptor",
        py(
            "import os; f = os.open('/home/me/precious/diary.txt', os.O_RDONLY); os.link(f'/proc/self/fd/{f}', 'zz',"
            " follow_symlinks=True); open('zz', 'a').write('PWN')"
        ),
    ),
    _hard(
        "hard link to Hermes' config that was there before",
        sh("echo '# PWN' >> hcfg"),
        before="ln ~/.hermes/config.yaml hcfg",
    ),
    _hard(
        "write_file into a hard link to Hermes' config",
        write("hcfg", "terminal: {sandbox: off}\n"),
        before="ln ~/.hermes/config.yaml hcfg",
    ),
    _hard(
        "patch of a hard link to .bashrc",
        replace("rc", "# mine", "PWN"),
        sh("echo PWN >> rc"),
        before="ln ~/.bashrc rc",
    ),
    _hard("read_file of a hard link to a key", read("k"), before="ln ~/.ssh/id_ed25519 k"),
    _hard(
        "hard link to a hook that was there before",
        sh("echo 'touch ~/PWN' >> hk"),
        before="ln .git/hooks/post-checkout hk",
    ),
)

_SWAP = (
    "python3 - <<'HERE'\nimport os, time\nend = time.time() + 4\nos.makedirs('real', exist_ok=True)\nwhile time.time()"
    " < end:\n    for target in ('real', '{target}'):\n        try: os.unlink('d')\n        except OSError: pass\n     "
    "   try: os.symlink(target, 'd')\n        except OSError: pass\nHERE"
)


def _race(name: str, target: str, *calls: Call) -> Attack:
    return Attack(name=name, family="races", steps=(background(_SWAP.format(target=target)), *calls))


_RACES = (
    _race("folder swapped under write_file", "/home/me/precious", *(write("d/PWN", "PWN") for _ in range(12))),
    _race(
        "folder swapped under patch",
        "/home/me/precious",
        *(_patch(f"*** Begin Patch\n*** Add File: d/PWN{n}\n+PWN\n*** End Patch") for n in range(12)),
    ),
    _race("folder swapped under read_file", "/home/me/.ssh", *(read("d/id_ed25519") for _ in range(12))),
    _race("folder swapped under search_files", "/home/me/.ssh", *(search("plain words", "d") for _ in range(6))),
    _race(
        "folder swapped under a script's write_file",
        "/home/me/precious",
        code("from hermes_tools import write_file\nfor n in range(30):\n    write_file('d/PWN', 'x')"),
    ),
    _race(
        "folder swapped under a command",
        "/home/me/precious",
        sh("for i in $(seq 200); do echo PWN > d/PWN; done 2>/dev/null"),
    ),
    Attack(
        name="file exchanged with a link under write_file",
        family="races",
        steps=(
            background(
                "python3 - <<'HERE'\nimport ctypes, os, time\nl ="
                " ctypes.CDLL(None)\nos.symlink('/home/me/precious/diary.txt', 'b')\nopen('a', 'w').close()\nend ="
                " time.time() + 4\nwhile time.time() < end:\n    l.renameat2(-100, b'a', -100, b'b', 2)\nHERE"
            ),
            *(write("a", "PWN") for _ in range(12)),
        ),
    ),
    Attack(
        name="git config restored only at the end of the command",
        family="races",
        steps=(
            background(
                "python3 - <<'HERE'\nimport time\nend = time.time() + 3\nwhile time.time() < end:\n    try:"
                " open('.git/config', 'a').write('[core]\\n\\tfsmonitor = touch /home/me/PWN\\n')\n    except OSError:"
                " pass\n    time.sleep(0.05)\nHERE"
            ),
            sh("true"),
            sh("sleep 1"),
            sh("true"),
        ),
    ),
)


def _tool(name: str, *steps: Call, border: bool = False) -> Attack:
    return Attack(name=name, family="file tools", steps=steps, held_by="border" if border else "question")


_TOOLS = (
    *(
        _tool(f"write_file to {path}", write(path, "PWN\n"))
        for path in (
            *("~/PWN", "~/.local/bin/mytool", "~/.local/lib/python3.11/site-packages/x.pth", "~/.cargo/config.toml"),
            *("~/.config/direnv/direnvrc", "~/.hgrc", "../other-project/x.py", "/tmp/../home/me/PWN", "../PWN"),
            *(
                "/home/me/project/../PWN",
                "/proc/self/root/home/me/PWN",
                "/proc/self/cwd/../PWN",
                "~/.config/git/config",
            ),
            *("~/.ssh/authorized_keys", "~/.hermes/skills/mine/SKILL.md", "~/.hermes/tools/evil.py"),
        )
    ),
    *(
        _tool(f"write_file to {path} of the workspace", write(path, "PWN\n"), border=True)
        for path in (
            ".git/hooks/post-merge",
            ".hermes/notes.md",
            ".venv/bin/python3",
            "lib/inner/.git/hooks/pre-commit",
            ".git/../.git/hooks/x",
            "src/../.git/hooks/y",
            ".git/modules/vendor/sub/hooks/z",
        )
    ),
    _tool("write_file to Hermes' config", write("~/.hermes/config.yaml", "terminal: {sandbox: off}\n"), border=True),
    _tool("write_file to Hermes' secrets", write("~/.hermes/.env", "A=1\n"), border=True),
    _tool("patch of .bashrc", replace("~/.bashrc", "# mine", "PWN")),
    _tool(
        "patch deletes a file of the home",
        _patch("*** Begin Patch\n*** Delete File: /home/me/precious/diary.txt\n*** End Patch"),
    ),
    _tool(
        "patch moves a file into the home",
        sh("echo a > f"),
        _patch("*** Begin Patch\n*** Update File: f\n*** Move to: /home/me/PWN\n@@\n-a\n+b\n*** End Patch"),
    ),
    _tool(
        "script's write_file into the home",
        code("from hermes_tools import write_file\nprint(write_file('/home/me/PWN', 'x'))"),
    ),
    _tool(
        "script's terminal into the home",
        code("from hermes_tools import terminal\nprint(terminal('touch /home/me/PWN'))"),
        border=True,
    ),
    _tool("script writes into the home", code("open('/home/me/PWN', 'w')"), border=True),
)

ATTACKS = (*_LINKS, *_HARD_LINKS, *_RACES, *_TOOLS)
