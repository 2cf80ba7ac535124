"""What harmless programs would print: enough to see through `$(echo …)` and decoding pipes."""

import base64
import binascii
import re
from collections.abc import Callable

from hermes.tools.approval.command_text import UNKNOWN, words
from hermes.tools.approval.lexer import ansi
from hermes.tools.approval.options import read_options
from hermes.tools.approval.paths import is_credential, is_private, resolve
from hermes.tools.approval.run_state import DARK, MAX_VALUES, NOTHING, Command, CommandOutput, Handlers
from hermes.tools.approval.stream_flow import read, subscripts
from hermes.tools.approval.word_patterns import plain

_MAX = 16384
_MANY = 500  # lines: a program for each of them at once is too much
_FORMAT = re.compile(r"%(?:%|[-+ 0#]*\d*(?:\.\d+)?([sbcdiuxXoq]))")
_SED = re.compile(r"s(.)((?:\\.|(?!\1)[^\\])*)\1((?:\\.|(?!\1)[^\\])*)\1([gIi]*)\Z", re.DOTALL)
_CLASSES = {"[:upper:]": "A-Z", "[:lower:]": "a-z", "[:digit:]": "0-9", "[:space:]": " \t\n", "[:alpha:]": "A-Za-z"}


def labelled(cmd: Command, out: CommandOutput) -> CommandOutput:
    """`out` with what the input and the files among the words bring: private, remote, decoded."""
    labels = cmd.stdin.labels | out.labels
    for word in cmd.args:
        if word[:1] != "-" and ("/" in word or "." in word) and UNKNOWN not in word:
            path = resolve(word, cmd.scope, cmd.run)
            if path in cmd.run.files:
                labels |= cmd.run.files[path].labels
            elif is_private(path, cmd.run.places):
                labels |= {"private", "credential"} if is_credential(path, cmd.run.places) else {"private"}
    return CommandOutput(out.text, labels)


def text_of(cmd: Command, operands: list[str]) -> CommandOutput:
    """The input of a filter: its file operands, or standard input."""
    if not operands or operands == ["-"]:
        return cmd.stdin
    labels: frozenset[str] = frozenset()
    texts: list[str | None] = []
    for word in operands:
        out = cmd.stdin if word == "-" else read(word, cmd.scope, cmd.run)
        labels |= out.labels
        texts.append(out.text)
    known = [text for text in texts if text is not None]
    if len(known) == len(texts):
        return CommandOutput("".join(known), labels)
    return CommandOutput(None, labels - {"file"} if any(known) else labels)  # with other text added, it is not the file


def echo(cmd: Command) -> CommandOutput:
    args = list(cmd.args)
    newline, escapes = "\n", False
    while args and re.fullmatch(r"-[neE]+", args[0]):
        flags = args.pop(0)
        newline = "" if "n" in flags else newline
        escapes = "e" in flags or escapes
    text = " ".join(args) + newline
    return labelled(cmd._replace(stdin=DARK, args=[]), CommandOutput(ansi(_octal(text)) if escapes else text))


def _octal(text: str) -> str:
    return re.sub(r"\\0([0-7]{1,3})", r"\\\1", text)


def printf(cmd: Command) -> CommandOutput:
    args = list(cmd.args)
    variable = ""
    if len(args) > 2 and args[0] == "-v":
        variable, args = args[1], args[2:]
    if args and args[0] == "--":
        args = args[1:]
    if not args:
        return CommandOutput("")
    text = _format(ansi(_octal(args[0])), args[1:])
    if variable:
        subscripts(cmd, variable)
        cmd.scope.put(variable.partition("[")[0], (text,))
        return CommandOutput("")
    return CommandOutput(text)


def _format(pattern: str, args: list[str]) -> str:
    out: list[str] = []
    rest = list(args)
    for _ in range(MAX_VALUES):
        used = len(rest)

        def one(found: re.Match[str]) -> str:
            if found[1] is None:
                return "%"
            value = rest.pop(0) if rest else ""
            if found[1] == "b":
                return ansi(_octal(value))
            if found[1] == "c":
                return value[:1]
            if found[1] in "xXo" and value.isdigit():
                return format(int(value[:9]), found[1])
            return value

        out.append(_FORMAT.sub(one, pattern))
        if not rest or used == len(rest):
            break
    else:
        out.append(UNKNOWN)
    whole = "".join(out)
    return whole if len(whole) <= _MAX else whole[:_MAX] + UNKNOWN


def cat(cmd: Command) -> CommandOutput:
    operands = read_options(cmd.args).operands
    if not operands and cmd.stdin is NOTHING and cmd.via[-1:] == ("$()",):
        return DARK  # it reads what the command around it is given
    return text_of(cmd, operands)


def decode(cmd: Command) -> CommandOutput:
    options = read_options(cmd.args, "wi")
    if not options.has("dD", "decode"):
        out = text_of(cmd, options.operands)
        if out.text is None or UNKNOWN in out.text:
            return CommandOutput(None, out.labels - {"file"})
        return CommandOutput(base64.b64encode(out.text.encode()).decode() + "\n", out.labels)
    out = text_of(cmd, options.operands + ([options.values["i"]] if "i" in options.values else []))
    kind = base64.b32decode if cmd.name == "base32" else base64.b64decode
    return CommandOutput(_decoded(out.text, kind), (out.labels - {"file"}) | {"decoded"})


def openssl(cmd: Command) -> CommandOutput | None:
    if "s_client" in cmd.args and cmd.stdin.labels & {"private", "environment"}:
        cmd.run.add("exfiltration", "send private data over a connection of openssl")
    if "-d" not in cmd.args:
        return None
    labels = (cmd.stdin.labels - {"file"}) | {"decoded"}
    if "base64" in cmd.args or "-base64" in cmd.args or "-a" in cmd.args:
        return CommandOutput(_decoded(cmd.stdin.text, base64.b64decode), labels)
    return CommandOutput(None, labels)


def _decoded(text: str | None, decoder: Callable[[bytes], bytes]) -> str | None:
    if text is None or UNKNOWN in text or len(text) > _MAX:
        return None
    raw = re.sub(r"\s", "", text).encode("ascii", "ignore")
    try:
        return decoder(raw + b"=" * (-len(raw) % 4)).decode("utf-8", "replace")
    except (binascii.Error, ValueError):
        return None


def xxd(cmd: Command) -> CommandOutput:
    options = read_options(cmd.args, "clsgo")
    out = text_of(cmd, options.operands[:1])
    if not options.has("r"):
        return CommandOutput(None, out.labels)
    text = None
    if out.text is not None and UNKNOWN not in out.text and len(out.text) <= _MAX:
        digits = re.sub(r"(?m)^[0-9a-f]+: |  .*$", "", out.text) if not options.has("p") else out.text
        digits = re.sub(r"[^0-9a-fA-F]", "", digits)
        text = bytes.fromhex(digits[: len(digits) & ~1]).decode("utf-8", "replace")
    return CommandOutput(text, (out.labels - {"file"}) | {"decoded"})


def rev(cmd: Command) -> CommandOutput:
    out = text_of(cmd, cmd.args)
    text = None if out.text is None else "\n".join(line[::-1] for line in out.text.split("\n"))
    return CommandOutput(text, (out.labels - {"file"}) | {"decoded"})


def tr(cmd: Command) -> CommandOutput:
    options = read_options(cmd.args)
    text = cmd.stdin.text
    # A translation of whole alphabets turns one text into another; deleting or squeezing characters is no code.
    first = options.operands[0] if options.operands else ""
    labels = cmd.stdin.labels
    if options.has("cC", "complement") or text is None or len(text) > _MAX or not options.operands:
        return CommandOutput(
            None, labels | ({"decoded"} if len(_set(first)) > 4 and not options.has("d") else frozenset())
        )
    source = _set(first)
    if options.has("d", "delete"):
        return CommandOutput("".join(char for char in text if char not in source), labels)
    target = _set(options.operands[1]) if len(options.operands) > 1 else source
    target = target + target[-1:] * (len(source) - len(target))
    table = {ord(a): b for a, b in zip(source, target, strict=False)}
    return CommandOutput(text.translate(table), labels | {"decoded"})


def _set(spec: str) -> str:
    for name, body in _CLASSES.items():
        spec = spec.replace(name, body)
    spec = ansi(plain(spec))
    return re.sub(
        r"(.)-(.)",
        lambda found: "".join(map(chr, range(ord(found[1]), min(ord(found[2]), ord(found[1]) + 255) + 1))),
        spec,
    )[:512]


def sed(cmd: Command) -> CommandOutput | None:
    scripts = [arg for arg in cmd.args if not arg.startswith("-")]
    found = _SED.match(scripts[0]) if scripts else None
    text = cmd.stdin.text
    if found is None or text is None or len(scripts) > 1 or UNKNOWN in text or len(text) > 1024:
        return None
    pattern, replacement = found[2], found[3]
    if re.search(r"[*+?{\\\[(]", pattern) or "\\" in replacement or "&" in replacement:
        return None
    count = 0 if "g" in found[4] else 1
    lines = [re.sub(pattern, lambda _: replacement, line, count=count) for line in text.split("\n")]
    return CommandOutput("\n".join(lines), cmd.stdin.labels)


def where(cmd: Command) -> CommandOutput:
    names = [arg for arg in cmd.args if not arg.startswith("-")]
    return CommandOutput(f"/usr/bin/{names[0]}\n" if names else "")


def pwd(cmd: Command) -> CommandOutput:
    return CommandOutput(cmd.scope.cwd + "\n")


def base_name(cmd: Command) -> CommandOutput:
    operands = read_options(cmd.args, "s").operands
    if not operands:
        return DARK
    if cmd.name == "dirname":
        return CommandOutput(
            (operands[0].rstrip("/").rpartition("/")[0] or ("/" if operands[0].startswith("/") else ".")) + "\n"
        )
    name = operands[0].rstrip("/").rpartition("/")[2]
    return CommandOutput((name.removesuffix(operands[1]) if len(operands) > 1 else name) + "\n")


def mktemp(_cmd: Command) -> CommandOutput:
    return CommandOutput("/tmp/tmp.hermes0000\n")  # noqa: S108 - stands for a fresh name in the temp folder


def seq(cmd: Command) -> CommandOutput:
    numbers = [arg for arg in cmd.args if arg.isdigit()]
    if len(numbers) != len(cmd.args) or not numbers:
        return DARK
    low, high = (1, int(numbers[0][:6])) if len(numbers) == 1 else (int(numbers[0][:6]), int(numbers[-1][:6]))
    text = "".join(f"{number}\n" for number in range(low, min(high, low + 40) + 1))
    return CommandOutput(text, frozenset({"many"}) if high - low >= _MANY else frozenset())


def decompress(cmd: Command) -> CommandOutput | None:
    if cmd.stdin.labels or cmd.stdin.text:
        return CommandOutput(None, (cmd.stdin.labels - {"file"}) | {"decoded"})
    return None


def environment(_cmd: Command) -> CommandOutput:
    return CommandOutput(None, frozenset({"environment"}))


def nothing(_cmd: Command) -> CommandOutput:
    return CommandOutput("")


PURE: Handlers = {
    "echo": echo,
    "printf": printf,
    "cat": cat,
    **dict.fromkeys(words("base64 base32"), decode),
    "openssl": openssl,
    "xxd": xxd,
    "rev": rev,
    "tr": tr,
    "which": where,
    "pwd": pwd,
    **dict.fromkeys(words("basename dirname"), base_name),
    "mktemp": mktemp,
    "seq": seq,
    **dict.fromkeys(words("gunzip zcat bunzip2 xz unxz uudecode gzip zstd"), decompress),
    "printenv": environment,
    **dict.fromkeys(words("true false : sleep wait"), nothing),
}
