"""Programs made from a seed, to find one that stalls the judge: recursion, branches, loops, nesting, and long texts."""

import random
from collections.abc import Callable
from functools import cache

from tests.tools.approval.corpora import destructive, destructive_scripts, everyday, everyday_scripts

MAX_SIZE = 60_000
_IMPORTS = (
    "os",
    "subprocess",
    "socket",
    "requests",
    "http.client",
    "shutil",
    "sqlite3",
    "json",
    "pathlib",
    "urllib.parse",
)
_CALLS = ("os.system", "subprocess.run", "os.remove", "shutil.rmtree", "open", "print", "requests.get", "len", "exec")
_LANGUAGES = ("node -e", "perl -e", "ruby -e", "php -r", "lua -e", "Rscript -e", "julia -e", "awk", "sed", "psql -c")
_UNITS = (
    *(
        "(",
        "[",
        "{",
        "'",
        '"',
        "`",
        "\\",
        "/",
        "#",
        "$",
        "$(",
        "${x:-",
        "$((",
        "<(",
        "<<A\n",
        "{a,b}",
        "{1..9}",
        "a[",
        "*",
    ),
    *(
        "x=$x$x;",
        "if a; then ",
        "for i in a b c; do ",
        "case a in ",
        "f(){ f;};",
        "a && ",
        "a || ",
        "a | ",
        "\\\n",
        "é ",
    ),
    *(
        "#{",
        "s/a/",
        "qw(",
        "%x(",
        "/*",
        "//",
        "--",
        "$a$",
        "''",
        '""',
        "'\\",
        '"\\',
        "a.b",
        "a['b']",
        "`${",
        "=~ /",
        "<?php ",
    ),
    *(
        "DROP TABLE x;",
        "select 1;",
        "rm -rf ~;",
        "bash -c '",
        "xargs ",
        "sudo ",
        "env A=1 ",
        "eval ",
        "x=1 ",
        "{{",
        "~/",
        "*?[",
    ),
    *(
        "lambda: ",
        "not ",
        "-",
        "x.",
        "x[",
        "f(",
        "a+",
        "a if b else ",
        "[x for x in ",
        "f'{",
        "await ",
        "x:=",
        "@a\n",
        "'a'",
    ),
)


def program(seed: int) -> tuple[str, str]:
    """("code" or "command", text) of a program that is always the same for `seed`."""
    chance = random.Random(seed)
    make = chance.choice(_MAKERS)
    kind = "code" if make in _PYTHON else "command"
    text = make(chance)[:MAX_SIZE]
    return (kind, text) if kind == "code" or chance.random() < 0.7 else ("command", f"python3 -c '{text}'")


def _recursion(chance: random.Random) -> str:
    names = [f"f{number}" for number in range(chance.randint(1, 12))]
    lines = _imports(chance)
    for name in names:
        calls = " + ".join(f"{chance.choice(names)}(n - {number})" for number in range(chance.randint(1, 6)))
        lines += [f"def {name}(n, a=''):", f"    return n if n < 2 else {calls}"]
    return "\n".join([*lines, f"{chance.choice(_CALLS)}({names[0]}(3))"])


def _branches(chance: random.Random) -> str:
    lines = [*_imports(chance), "a = b = c = ''"]
    for number in range(chance.choice((4, 12, 20, 60, 200, 800))):
        name, other = chance.choice("abc"), chance.choice("abc")
        how = chance.choice((f"{name} = {other} + 'x'", f"{name} += {other}", f"{name} = f'{{{other}}}-{{{name}}}'"))
        lines += [f"if q{number}:", f"    {how}", "else:", f"    {name} = {other} + {chance.choice('abc')}"]
        if chance.random() < 0.1:
            lines.append(f"c = [a, b, *c] + [{name}]")
    given = chance.choice(("a", "b + c", "[a, b, c]", "f'{a}{b}{c}'"))
    return "\n".join([*lines, f"{chance.choice(_CALLS)}({given})"])


def _loops(chance: random.Random) -> str:
    lines = _imports(chance)
    for depth in range(chance.randint(1, 60)):
        head = chance.choice(("for {v} in {s}:", "while {v}:", "with open({s}) as {v}:", "if {v}:", "try:"))
        lines.append("  " * depth + head.format(v=f"v{depth % 7}", s=f"v{(depth * 3 + 1) % 7}"))
        if head == "try:":
            lines[-1] = "  " * depth + "if 1:"
    body = "  " * len(lines) + f"v{chance.randint(0, 6)}.append([v1, v2, *v3]); {chance.choice(_CALLS)}(v4, v5)"
    return "\n".join([*lines, *[body] * chance.choice((1, 10, 300))])


def _nesting(chance: random.Random) -> str:
    text = chance.choice(("x", "'a'", "1", "os.system"))
    for _ in range(chance.choice((5, 40, 150, 1000))):
        form = chance.choice(
            ("({})", "[{}]", "f({})", "{}.a", "{} + 'b'", "{}[0]", "(lambda: {})()", "{{1: {}}}", "-{}", "{}()")
        )
        text = form.format(text)
    return "\n".join([*_imports(chance), f"{chance.choice(_CALLS)}({text})"])


def _names(chance: random.Random) -> str:
    """Names that stand for names, in circles, lists, fields and parameters."""
    lines = [*_imports(chance), "class K:", "    def m(self, x): self.x = x; return self.y"]
    names = [f"n{number}" for number in range(chance.randint(2, 40))]
    pick: Callable[[], str] = lambda: chance.choice(names)  # noqa: E731 - a word for what follows
    for _ in range(chance.choice((10, 100, 600))):
        form = chance.choice(
            (
                *(
                    "{} = {} or {}",
                    "{} = [{}, *{}]",
                    "{} = {}.join({})",
                    "{} = '{{}} {{}}'.format({}, {})",
                    "{} = {} + {}",
                ),
                *(
                    "for {} in zip({}, {}): pass",
                    "{} = {{'a': {}, **{}}}",
                    "{}.x = {}[{}]",
                    "{} = {} % ({},)",
                    "{}.append({} + {})",
                ),
                *("{}, {} = {}, 'x'", "{} = sorted({})[{}]", "{} = K().m({}).x or {}", "{} = list({}) + [{}]"),
            )
        )
        lines.append(form.format(pick(), pick(), pick()))
    return "\n".join([*lines, *(f"{chance.choice(_CALLS)}({pick()})" for _ in range(20))])


_LINES = (
    'if [ "$a" = {0} ]; then x="$x{0}"; y=$x; else x="$y"; fi',
    "for i in {{1..{0}}} a b c d; do for j in $i x y z; do x=$x$j; cp $i $j; done; done",
    "case $x in a) y=b;; b) y=$x;; *) y=c$y;; esac",
    "x=$(echo $x $(echo $y $(printf %s $x))); y=${{x//a/$y}}",
    "f{1} $x $y && x=1 || y=2",
    'cat <<E | while read l; do x=$l$x; bash -c "$x"; done\n$x\n$y\nE',
    "bash -c 'for k in 1 2 3; do eval \"echo $k; '\"$x\"'\"; done'",
    "while read -r p q; do mv $p $q; x+=$p; done < <(ls $x)",
    "echo {{a,b,c}}{{d,e,f}}{{g,h,{0}}} | xargs -n1 -I% sh -c 'echo %; rm %'",
)


def _shell(chance: random.Random) -> str:
    lines = [f'f{number}(){{ f{(number + 1) % 5}; f{(number * 2) % 5} "$@"; x=$x$1; }}' for number in range(5)]
    count = chance.choice((5, 40, 300))
    lines += [chance.choice(_LINES).format(number, number % 5) for number in range(count)]
    return "\n".join([*lines, "f1 a b; rm -rf $x; eval $y"])


def _other(chance: random.Random) -> str:
    unit = chance.choice(
        (
            "a = 'x' + a; ",
            "if (a) { f(a) } ",
            "s/a/b/e; ",
            '$x = "#{a}"; ',
            "[1,2].each { |x| puts x }; ",
            "`ls ${a}`; ",
        )
    )
    body = unit * chance.choice((3, 50, 1500))
    if chance.random() < 0.5:
        body = "".join(chance.choice(_UNITS) for _ in range(chance.choice((30, 2000))))
    return f"{chance.choice(_LANGUAGES)} '{body.replace(chr(39), chr(34))}'"


def _repeated(chance: random.Random) -> str:
    units = chance.sample(_UNITS, chance.randint(1, 3))
    size = chance.choice((300, 3000, 20_000, MAX_SIZE))
    return ("".join(units) * size)[:size]


def _heap(chance: random.Random) -> str:
    return "".join(chance.choice(_UNITS) for _ in range(chance.choice((20, 200, 5000))))


def _joined(scripts: list[str], chance: random.Random) -> str:
    size = chance.choice((4000, 20_000, MAX_SIZE))
    parts: list[str] = []
    while sum(map(len, parts)) < size:
        parts.append(chance.choice(scripts))
    text = "\n".join(parts)[:size]
    if chance.random() < 0.2:  # cut, or with a piece twice
        place = chance.randrange(len(text))
        text = text[place:] + text[: chance.randrange(place + 1)]
    return text


@cache
def _corpora() -> tuple[list[str], list[str], list[str], list[str]]:
    return everyday_scripts(), destructive_scripts(), everyday(), [command for _, command in destructive()]


def _joined_python(chance: random.Random) -> str:
    tame, wild, _, _ = _corpora()
    return _joined(chance.choice((tame, tame + wild)), chance)


def _joined_shell(chance: random.Random) -> str:
    return _joined(chance.choice(_corpora()[2:]), chance)


def _imports(chance: random.Random) -> list[str]:
    return [f"import {name}" for name in chance.sample(_IMPORTS, chance.randint(1, len(_IMPORTS)))]


_PYTHON = (_recursion, _branches, _loops, _nesting, _names, _joined_python)
_MAKERS = (*_PYTHON, _repeated, _heap, _shell, _shell, _other, _joined_shell)
