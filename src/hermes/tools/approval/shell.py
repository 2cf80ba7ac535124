"""Follow a parsed script: statements, loops and pipes, without running anything."""

import re
from collections.abc import Iterable

from hermes.tools.approval import dispatch
from hermes.tools.approval.expansion import Expansions
from hermes.tools.approval.glob import plain
from hermes.tools.approval.grammar import LIFTED, Node, parse, pieces
from hermes.tools.approval.lexer import SIMPLE, braces, expand, expand_one, expand_quoted
from hermes.tools.approval.redirects import Redirect, apply_writes
from hermes.tools.approval.state import DARK, MAX_DEPTH, NOTHING, Out, Run, Scope
from hermes.tools.approval.text import SECRET, UNKNOWN, join_lines, without_invisible

_BLANK = re.compile(r"(?:[ \t]|\\\n)*\Z")
# A command word that is one brace expansion: bash takes it, the grammar does not.
_BRACE_COMMAND = re.compile(r"((?:^|[;&|\n(])\s*)(\{[^\s;&|(){}'\"$`]*,[^\s;&|(){}'\"$`]*\})(?=[\s;&|)]|$)")
_LIFTED = re.compile(f"{LIFTED}(\\d+){LIFTED}")
_REDIRECTS = frozenset({"file_redirect", "heredoc_redirect", "herestring_redirect"})
_BLOCKS = frozenset(
    {
        "program", "compound_statement", "do_group", "if_statement", "elif_clause", "else_clause", "negated_command",
        "ERROR", "case_statement", "case_item",
    }
)  # fmt: skip
_STATEMENTS = _BLOCKS | {
    "command", "pipeline", "list", "subshell", "redirected_statement", "declaration_command", "unset_command",
    "variable_assignment", "variable_assignments", "while_statement", "for_statement", "function_definition",
    "test_command", "c_style_for_statement",
}  # fmt: skip
_WORDS = frozenset(
    {"word", "string", "raw_string", "ansi_c_string", "number", "concatenation", "simple_expansion", "expansion"}
)
_BACKGROUND = re.compile(r"(?<![&>\d])&(?![&>\d])")
_ENDLESS = re.compile(
    r"while\s+(?::|true|\[\s+1\s+\]|\(\(\s*1\s*\)\))\s*[;\n]|until\s+false\s*[;\n]|for\s*\(\([^;]*;\s*;"
)
_WAITS = re.compile(r"\b(?:wait|read|break|exit|return)\b|\bsleep\b[^&|;\n)]*(?:[;\n]|&&|\|\|)")
_QUOTED = re.compile(r"'[^']*'|\"(?:[^\"\\]|\\.)*\"")
_CALLED = re.compile(r"[^\s;&|{}()<>\"'$`]+")
_COUNTED = re.compile(r"for\s*\(\(\s*(\w+)\s*=[^;]*;[^;]*\d{3}")
_MAX_LOOP = 12
_MAX_BODY = 400
_MAX_NODE_DEPTH = 60


class Follower:
    """Walks the statements of a script in order and keeps the run and a scope up to date."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.node_depth = 0
        run.script = self.script
        run.start = self.start

    def script(self, text: str, scope: Scope, stdin: Out, via: tuple[str, ...]) -> Out:
        """Follow `text` in `scope`; return what is known of its output."""
        run = self.run
        run.bytes_left -= len(text)
        if run.depth >= MAX_DEPTH or run.bytes_left < 0:
            run.unknown("commands are nested too deeply to be followed")
            return DARK
        if via:
            text = without_invisible(text)
            if "\\\n" in text and (whole := join_lines(text)) != text:
                self.script(whole, scope.fork(), stdin, via)
        run.depth += 1
        outputs: list[Out] = []
        errors = 0
        if "{" in text:
            text = _BRACE_COMMAND.sub(lambda found: found[1] + " ".join(braces(found[2])), text)
        for piece in pieces(text, run.lifted):
            source = piece or ""
            root = None if piece is None or errors > 1 else parse(source)
            if root is None:
                run.unknown("a statement is too long or too tangled to be parsed")
                errors += 1
                continue
            if root.has_error:
                errors += 1
                run.unknown("the command does not parse as bash")
            outputs.append(_Script(self, source, via).statement(root, scope, stdin))
        run.depth -= 1
        return joined(outputs)

    def start(self, argv: list[str], scope: Scope, stdin: Out, via: tuple[str, ...]) -> Out:
        """Judge one simple command whose words are resolved."""
        run = self.run
        if not argv or not run.spend():
            return DARK
        if len(via) > 2 * MAX_DEPTH:
            run.unknown("commands are nested too deeply to be followed")
            return DARK
        function = scope.functions.get(argv[0])
        if function is not None and argv[0] not in scope.stack and len(scope.stack) < 8:
            return self._call(function, argv, scope, stdin, via)
        return dispatch.judge(argv, scope, stdin, via, run)

    def _call(
        self, function: tuple[object, str], argv: list[str], scope: Scope, stdin: Out, via: tuple[str, ...]
    ) -> Out:
        body, source = function
        assert isinstance(body, Node)
        saved_args, saved_stack = scope.args, scope.stack
        scope.args, scope.stack = tuple(argv[1:]), (*saved_stack, argv[0])
        out = _Script(self, source, via).statement(body, scope, stdin)
        scope.args, scope.stack = saved_args, saved_stack
        return out


class _Script:
    """One parsed source: its nodes know their place in `source` only."""

    def __init__(self, follower: Follower, source: str, via: tuple[str, ...]) -> None:
        self.follower = follower
        self.run = follower.run
        self.source = source
        self.via = via

    def text(self, node: Node) -> str:
        return self.source[node.start_byte : node.end_byte]

    def statement(self, node: Node, scope: Scope, stdin: Out, redirects: tuple[Node, ...] = ()) -> Out:
        follower = self.follower
        if follower.node_depth >= _MAX_NODE_DEPTH:
            self.run.unknown("commands are nested too deeply to be followed")
            return DARK
        follower.node_depth += 1
        out = self._statement(node, scope, stdin, redirects)
        follower.node_depth -= 1
        return out

    def _statement(self, node: Node, scope: Scope, stdin: Out, redirects: tuple[Node, ...]) -> Out:
        kind = node.type
        if kind == "command":
            return self.command(node, scope, stdin, redirects)
        if kind == "redirected_statement":
            return self.redirected(node, scope, stdin, redirects)
        if kind == "pipeline":
            return self.pipeline(node, scope, stdin, redirects)
        if kind == "list":
            return self.sequence(node, scope, stdin, redirects)
        if redirects:
            return self._compound_redirected(node, scope, stdin, redirects)
        if kind in _BLOCKS:
            return self.sequence(node, scope, stdin)
        return self._other(node, scope, stdin)

    def _other(self, node: Node, scope: Scope, stdin: Out) -> Out:
        kind = node.type
        if kind == "subshell":
            return self.sequence(node, scope.fork(), stdin)
        if kind == "for_statement":
            return self.loop(node, scope, stdin)
        if kind in ("while_statement", "c_style_for_statement"):
            return self.while_loop(node, scope, stdin)
        if kind == "variable_assignment":
            self.assign(node, scope)
        elif kind == "variable_assignments":
            for part in node.named_children:
                self.assign(part, scope)
        elif kind == "declaration_command":
            self.declaration(node, scope)
            if not any(part.type in ("variable_assignment", "variable_name") for part in node.named_children):
                return Out(None, frozenset({"environment"}))  # `export -p`, `declare -x`: it lists them
        elif kind == "unset_command":
            self.follower.start(["unset", *self.words(node.children[1:], scope)], scope, NOTHING, self.via)
        elif kind == "function_definition":
            self.define(node, scope)
        elif kind != "comment":
            self.visit_words(node, scope)
        return NOTHING

    def sequence(self, node: Node, scope: Scope, stdin: Out, redirects: tuple[Node, ...] = ()) -> Out:
        """Statements one after the other; redirections that the grammar hung on a list belong to its last command."""
        children = [child for child in node.named_children if child.type != "comment"]
        outputs = []
        for number, child in enumerate(children):
            is_last = number == len(children) - 1
            if child.type in _STATEMENTS:
                outputs.append(self.statement(child, scope, stdin, redirects if is_last else ()))
            elif child.type in _REDIRECTS:
                apply_writes(self.redirections([child], scope), NOTHING, scope, self.run)
            else:
                self.visit_words(child, scope)
        return joined(outputs)

    def pipeline(self, node: Node, scope: Scope, stdin: Out, redirects: tuple[Node, ...]) -> Out:
        stages = [child for child in node.named_children if child.type != "comment"]
        flow = stdin
        for number, stage in enumerate(stages):
            is_last = number == len(stages) - 1
            flow = self.statement(stage, scope.fork(), flow, redirects if is_last else ())
        return flow

    def redirected(self, node: Node, scope: Scope, stdin: Out, outer: tuple[Node, ...]) -> Out:
        children = node.children
        redirects = tuple(child for child in children if child.type in _REDIRECTS)
        body = next((child for child in children if child.type not in _REDIRECTS and child.is_named), None)
        inner = (*redirects, *outer)
        if body is None:
            resolved = self.redirections(inner, scope)
            apply_writes(resolved, NOTHING, scope, self.run)
            # `$(< file)` is what the file holds.
            out = joined([one.content for one in resolved if one.op == "<" and one.target] or [NOTHING])
        else:
            out = self.statement(body, scope, stdin, inner)
        for redirect in redirects:
            if redirect.type == "heredoc_redirect":
                out = self._after_heredoc(redirect, scope, out)
        return out

    def _after_heredoc(self, node: Node, scope: Scope, out: Out) -> Out:
        """`cat <<EOF | sh` and `… <<EOF && next`: the grammar keeps what follows inside the here-document's node."""
        for child in node.named_children:
            if child.type == "pipeline":
                out = self.pipeline(child, scope, out, ())
            elif child.type in _STATEMENTS:
                self.statement(child, scope, NOTHING)
        return out

    def _compound_redirected(self, node: Node, scope: Scope, stdin: Out, nodes: tuple[Node, ...]) -> Out:
        resolved = self.redirections(nodes, scope)
        for redirect in resolved:
            if redirect.op.startswith("<"):
                stdin = redirect.content
        out = self._statement(node, scope, stdin, ())
        return apply_writes(resolved, out, scope, self.run)

    def command(self, node: Node, scope: Scope, stdin: Out, outer: tuple[Node, ...]) -> Out:
        run = self.run
        words: list[Node] = []
        assignments: list[Node] = []
        redirects: list[Node] = list(outer)
        for child in node.children:
            kind = child.type
            if kind in _REDIRECTS:
                redirects.append(child)
            elif kind == "variable_assignment":
                assignments.append(child)
            else:
                words.append(child)
        lost = self._between(node, outer[0]) if outer else ""
        if outer and words and words[-1].type == "number" and words[-1].end_byte == outer[0].start_byte:
            words.pop()  # `cmd 0< file`: the grammar takes the descriptor for a word
        for place in redirects:
            if place.type == "heredoc_redirect":
                words += [extra for extra in place.named_children if extra.type in _WORDS]
            elif place.type == "file_redirect":
                words += _extra_words(place)
        before, run.substituted = run.substituted, frozenset()
        argv = self.words(words, scope)
        if lost:
            argv += [field for word in lost.split() for field in expand(word, Expansions(run, self.via, scope))]
        inner = scope if not (assignments and argv) else scope.fork()
        for assignment in assignments:
            self.assign(assignment, inner)
        resolved = self.redirections(redirects, scope) if redirects else []
        for redirect in resolved:
            if redirect.op.startswith("<"):
                stdin = redirect.content
                if redirect.fd.isdigit():
                    run.files[f"/dev/fd/{redirect.fd}"] = redirect.content
        out = self.follower.start(argv, inner, stdin, self.via) if argv else NOTHING
        if inner is not scope:
            scope.cwd = inner.cwd
        if run.substituted:
            out = Out(out.text, out.labels | run.substituted)
        run.substituted = before
        return apply_writes(resolved, out, scope, run) if resolved else out

    def _between(self, node: Node, redirect: Node) -> str:
        """Words before a redirection that the grammar leaves out of its tree, such as `-` before `<<`."""
        between = self.source[node.end_byte : redirect.start_byte].replace("\\\n", " ").strip()
        return "" if set(between) & set("<>;&|") or between.isdigit() else between

    def words(self, nodes: Iterable[Node], scope: Scope, *, over_lines: bool = False) -> list[str]:
        """Expand the words; neighbours without a gap are one word, whatever the grammar made of them."""
        spans: list[list[int]] = []
        end = -1
        for node in nodes:
            start = node.start_byte
            if start == end:
                spans[-1][1] = node.end_byte
            else:
                spans.append([start, node.end_byte])
            end = node.end_byte
        shell = Expansions(self.run, self.via, scope)
        source = self.source
        fields: list[str] = []
        previous = -1
        for start, end in spans:
            if previous >= 0 and source[previous:start] != " " and not over_lines and not self._is_gap(previous, start):
                self.run.unknown("the command does not parse as bash")
            previous = end
            raw = source[start:end]
            if raw[:1] == "(" and not over_lines:
                self.run.unknown("the command does not parse as bash")
            if SIMPLE.match(raw):
                fields.append(raw)
            else:
                fields += expand(raw, shell)
        return fields

    def _is_gap(self, start: int, end: int) -> bool:
        between = self.source[start:end]
        return bool(_BLANK.match(between)) or "<" in between or ">" in between

    def visit_words(self, node: Node, scope: Scope) -> None:
        """Follow the substitutions inside something that is no command: a test, a case word, arithmetic."""
        text = self.text(node)
        if node.type == "test_command" and "'" in text and "[$(" in text.replace("`", "$("):
            # `[[ -v 'a[$(x)]' ]]`: quotes do not keep an index from being evaluated.
            self.follower.script(f'echo "{text}"', scope.fork(), NOTHING, self.via)
        if "$" in text or "`" in text or "(" in text:
            expand_one(text, Expansions(self.run, self.via, scope))

    def assign(self, node: Node, scope: Scope) -> None:
        """`name=value`, `name+=value`, `name=(a b)`, `name[1]=value`."""
        target, _, value = self.text(node).partition("=")
        before, self.run.substituted = self.run.substituted, frozenset()
        if "$(" in target or "`" in target:  # the index runs, too
            expand_one(target, Expansions(self.run, self.via, scope))
        last = node.named_children[-1] if node.named_children else node
        if last.type == "array":
            values = tuple(self.words(last.named_children, scope, over_lines=True))
        else:
            values = (expand_one(value, Expansions(self.run, self.via, scope)),)
        labels, self.run.substituted = self.run.substituted, before
        dispatch.bind(target, values, scope, self.run, labels=labels)

    def declaration(self, node: Node, scope: Scope) -> None:
        words: list[str] = []
        for child in node.children:
            if child.type == "variable_assignment":
                self.assign(child, scope)
                if any(word[:1] == "-" and "n" in word for word in words[1:4]):  # it stands for another variable
                    scope.variables[self.text(child).partition("=")[0]] = (UNKNOWN,)
            else:
                words += self.words([child], scope)
        for field in words[1:]:
            if "[" in field and ("$(" in field or "`" in field):
                self.follower.script(f'echo "{plain(field)}"', scope.fork(), NOTHING, self.via)
            name, equals, value = field.partition("=")
            if equals and name.rstrip("+").isidentifier():
                dispatch.bind(name, (value,), scope, self.run)

    def define(self, node: Node, scope: Scope) -> None:
        name_node = node.child_by_field_name("name")
        body = node.child_by_field_name("body")
        if name_node is None or body is None:
            self.run.unknown("the command does not parse as bash")
            return
        name = plain(expand_one(self.text(name_node), Expansions(self.run, self.via, scope)))
        scope.functions[name] = (body, self.source)
        inner = self.text(body)
        calls = len(re.findall(rf"(?:^|[\s;&|{{(]){re.escape(name)}(?=[\s;&|)}}]|$)", inner))
        if _BACKGROUND.search(inner) and self._calls_back(name, inner, scope):
            dispatch.fork_bomb(self.run, name)
        if calls and (_BACKGROUND.search(inner) or (calls > 1 and "|" in inner)):
            dispatch.fork_bomb(self.run, name)

    def _calls_back(self, name: str, inner: str, scope: Scope) -> bool:
        """Whether a function that the body of `name` calls calls `name` again."""
        others = (
            scope.functions.get(word) for word in dict.fromkeys(_CALLED.findall(inner[:_MAX_BODY])) if word != name
        )
        return any(
            isinstance(known[0], Node)
            and name in _CALLED.findall(known[1][known[0].start_byte : known[0].end_byte][:_MAX_BODY])
            for known in others
            if known is not None
        )

    def loop(self, node: Node, scope: Scope, stdin: Out) -> Out:
        variable, body = node.child_by_field_name("variable"), node.child_by_field_name("body")
        if variable is None or body is None:
            return self.sequence(node, scope, stdin)
        items = [
            child
            for child in node.children
            if child.start_byte > variable.end_byte
            and child.end_byte <= body.start_byte
            and child.type not in ("in", ";", "\n", "do")
        ]
        before, self.run.substituted = self.run.substituted, frozenset()
        values = self.words(items, scope) if items else list(scope.args)
        name = self.text(variable)
        if self.run.substituted:
            scope.labels[name] = self.run.substituted
        self.run.substituted = before
        distinct = list(dict.fromkeys(values))
        if len(distinct) > _MAX_LOOP:
            distinct = [*distinct[:_MAX_LOOP], UNKNOWN]
        outputs = []
        for value in distinct:
            scope.variables[name] = (value,)
            outputs.append(self.statement(body, scope, stdin))
        return joined(outputs)

    def while_loop(self, node: Node, scope: Scope, stdin: Out) -> Out:
        whole = self.text(node)
        if _ENDLESS.match(whole) and not _WAITS.search(loose := _QUOTED.sub("", whole)) and _BACKGROUND.search(loose):
            dispatch.fork_bomb(self.run, "a loop without end")
        if counted := _COUNTED.match(whole):  # as a process number, it means all of them
            scope.variables[counted[1]] = (UNKNOWN,)
            scope.labels[counted[1]] = frozenset({"everyone"})
            body = node.child_by_field_name("body")
            if body is not None:
                expand_one(whole.partition("))")[0], Expansions(self.run, self.via, scope))
                return self.statement(body, scope, stdin)
        lines = stdin.text.splitlines() if stdin.text else []
        if len(lines) > 1 and "read" in self.source[node.start_byte : node.end_byte]:
            picked = lines if len(lines) <= _MAX_LOOP else [*lines[:_MAX_LOOP], UNKNOWN]
            return joined([self.sequence(node, scope, Out(line, stdin.labels)) for line in picked])
        return self.sequence(node, scope, stdin)

    def redirections(self, nodes: Iterable[Node], scope: Scope) -> list[Redirect]:
        found: list[Redirect] = []
        for node in nodes:
            if node.type == "heredoc_redirect":
                found.append(Redirect("<<", "", None, self._heredoc(node, scope)))
                found += self.redirections([child for child in node.children if child.type in _REDIRECTS], scope)
            elif node.type == "herestring_redirect":
                words = [child for child in node.children if child.type not in ("<<<", "file_descriptor")]
                text = " ".join(self.words(words, scope))
                labels = self.run.substituted | ({"environment"} if SECRET in text else set())
                content = Out(None, labels) if UNKNOWN in text else Out(text + "\n", labels)
                found.append(Redirect("<<<", "", None, content))
            else:
                found.append(self._file_redirect(node, scope))
        return found

    def _file_redirect(self, node: Node, scope: Scope) -> Redirect:
        op, fd = "", ""
        targets: list[Node] = []
        for child in node.children:
            if child.type == "file_descriptor":
                fd = self.text(child)
            elif not child.is_named and not op and child.type != "$":
                op = child.type
            elif not targets or targets[-1].end_byte == child.start_byte:
                targets.append(child)
        if targets and "\n" in self.source[node.start_byte : targets[0].start_byte].replace("\\\n", ""):
            self.run.unknown("the command does not parse as bash")  # the grammar reads on where bash gives up
        fields = self.words(targets, scope)
        target = fields[0] if fields else None
        if op == "<&" and fd in ("", "0") and target is not None and target.strip("0-").isdigit():
            return Redirect(op, "", None, self.run.files.get(f"/dev/fd/{target.rstrip('-')}", DARK))
        if target is None or (op in (">&", "<&") and target.rstrip("-").isdigit()) or target == "-":
            return Redirect("dup", fd, None)
        if op == "<":
            return Redirect(op, fd, target, dispatch.read(target, scope, self.run))
        return Redirect(op, fd, target)

    def _heredoc(self, node: Node, scope: Scope) -> Out:
        start = next((child for child in node.children if child.type == "heredoc_start"), None)
        body = next((child for child in node.children if child.type == "heredoc_body"), None)
        if start is None or body is None:
            return NOTHING
        end = next((child.start_byte for child in node.children if child.type == "heredoc_end"), body.end_byte)
        text = self.source[body.start_byte : end]
        if any(child.type == "<<-" for child in node.children):
            text = re.sub(r"(?m)^\t+", "", text)
        if LIFTED in text:
            lifted = self.run.lifted
            text = _LIFTED.sub(lambda found: lifted[int(found[1])] if int(found[1]) < len(lifted) else "", text)
        elif self.text(start)[:1] not in ("'", '"', "\\"):
            text = expand_quoted(text, Expansions(self.run, self.via, scope))
        return Out(text, self.run.substituted)


def _extra_words(redirect: Node) -> list[Node]:
    """`cmd > file word`: the grammar takes the words after the target as more targets."""
    extra: list[Node] = []
    end = -1
    for child in redirect.named_children:
        if child.type == "file_descriptor":
            continue
        if end < 0 or (child.start_byte == end and not extra):
            end = child.end_byte
        else:
            extra.append(child)
    return extra


def joined(outputs: list[Out]) -> Out:
    """The streams of several commands, one after the other."""
    if len(outputs) == 1:
        return outputs[0]
    labels: frozenset[str] = frozenset().union(*(out.labels for out in outputs))
    texts = [out.text for out in outputs if out.text is not None]
    if len(texts) != len(outputs):
        # A file with other text added is no longer the file that a person has seen.
        return Out(None, labels - {"file"} if any(texts) else labels)
    return Out("".join(texts)[:16384], labels)
