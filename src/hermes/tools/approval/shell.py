"""Follow a parsed script, statement by statement, without running anything."""

import re

from hermes.tools.approval import dispatch, exhaustion
from hermes.tools.approval.branches import BLOCKS, STATEMENTS, Branches, either, joined
from hermes.tools.approval.command_text import other_readings
from hermes.tools.approval.grammar import Node, parse, pieces
from hermes.tools.approval.lexer import expand, expand_one
from hermes.tools.approval.params import Expansions
from hermes.tools.approval.run_state import DARK, MAX_DEPTH, NOTHING, AnalysisRun, CommandOutput, Scope
from hermes.tools.approval.statements import REDIRECTS, extra_words
from hermes.tools.approval.stream_flow import apply_writes
from hermes.tools.approval.tables import word_list
from hermes.tools.approval.value_sets import ValueSets, back_to, chosen, each_way, merge, moment
from hermes.tools.approval.word_patterns import braces, plain

# A command word that is one brace expansion: bash takes it, the grammar does not.
_BRACE_COMMAND = re.compile(r"((?:^|[;&|\n(])\s*)(\{[^\s;&|(){}'\"$`]*,[^\s;&|(){}'\"$`]*\})(?=[\s;&|)]|$)")
_HEAD = r"((?:^|[;&|\n({!]|\b(?:then|do|else|if|while|until)\s)\s*)"
_TIMED = re.compile(_HEAD + r"time\s+(?:-p\s+)?(?=\(|\{\s)", re.MULTILINE)
# What a filter is told through its pipes is text; of any other program behind `coproc` nothing is assumed.
_COPROC = re.compile(
    _HEAD + r"coproc\s+(?:([A-Za-z_]\w*)\s+)?([({]\s*(?:bc|cat|tr|sort|jq|grep|rev|nl)\s)", re.MULTILINE
)
_WORDS = frozenset(
    {"word", "string", "raw_string", "ansi_c_string", "number", "concatenation", "simple_expansion", "expansion"}
)
_MAX_NODE_DEPTH = 60
_COMMAND = 16  # steps to judge one command
_FUNCTION = 8  # and to look at one that is defined
_CHARACTERS = 8  # that are read and parsed in one step


class Follower:
    """Walks the statements of a script in order and keeps the run and a scope up to date."""

    def __init__(self, run: AnalysisRun) -> None:
        self.run = run
        self.node_depth = 0
        run.script = self.script
        run.start = self.start

    def script(self, text: str, scope: Scope, stdin: CommandOutput, via: tuple[str, ...]) -> CommandOutput:
        """Follow `text` in `scope`; return what is known of its output."""
        run = self.run
        run.budget.spend(1 + len(text) // _CHARACTERS)
        if run.depth >= MAX_DEPTH:
            run.unknown("commands are nested too deeply to be followed")
            return DARK
        if via:  # all ways to read the whole text are looked at before anything is followed
            for other in other_readings(text):
                self.script(other, scope.fork(), stdin, via)
        run.depth += 1
        outputs: list[CommandOutput] = []
        errors = 0
        if "time" in text:
            text = _TIMED.sub(r"\1", text)
        if "coproc" in text:
            text = _COPROC.sub(lambda found: f"{found[1]}{found[2] or 'COPROC'}=(8 9); {found[3]}", text)
        if "{" in text:
            text = _BRACE_COMMAND.sub(lambda found: found[1] + " ".join(braces(found[2], run.budget)), text)
        for piece in pieces(text, run.lifted, run.budget):
            source = piece or ""
            root = None if piece is None or errors > 1 else parse(source)
            if root is None:
                run.unknown("a statement is too long or too tangled to be parsed")
                errors += 1
                continue
            if root.has_error:
                errors += 1
                run.budget.spend(len(source) // 2)  # to make something of an error takes the grammar long
                run.unknown("the command does not parse as bash")
            outputs.append(_Script(self, source, via).statement(root, scope, stdin))
        run.depth -= 1
        return joined(outputs)

    def start(self, argv: list[str], scope: Scope, stdin: CommandOutput, via: tuple[str, ...]) -> CommandOutput:
        """Judge one simple command whose words are resolved."""
        run = self.run
        if not argv:
            return DARK
        run.budget.spend(_COMMAND + 2 * len(argv) + sum(map(len, argv)) // _CHARACTERS)
        if len(via) > 2 * MAX_DEPTH:
            run.unknown("commands are nested too deeply to be followed")
            return DARK
        function = scope.functions.get(argv[0])
        if function is not None and argv[0] not in scope.stack and len(scope.stack) < 8:
            start = moment(scope, run) if len(function) > 1 else None
            outputs: list[CommandOutput] = []
            ways: list[ValueSets] = []
            for body in function:
                if start is not None:
                    back_to(start, scope, run)
                outputs.append(self._call(body, argv, scope, stdin, via))
                ways += [moment(scope, run)] if start is not None else []
            if ways:
                merge(ways, scope, run)
            return joined(outputs)
        return dispatch.judge(argv, scope, stdin, via, run)

    def _call(
        self, function: tuple[object, str], argv: list[str], scope: Scope, stdin: CommandOutput, via: tuple[str, ...]
    ) -> CommandOutput:
        body, source = function
        assert isinstance(body, Node)
        saved_args, saved_stack, several = scope.args, scope.stack, scope.choices.pop("@", None)
        scope.args, scope.stack = tuple(argv[1:]), (*saved_stack, argv[0])
        out = _Script(self, source, via).statement(body, scope, stdin)
        scope.args, scope.stack = saved_args, saved_stack
        scope.choices.pop("@", None)
        if several is not None:
            scope.choices["@"] = several
        return out


class _Script(Branches):
    """A parsed source, statement by statement."""

    def statement(
        self, node: Node, scope: Scope, stdin: CommandOutput, redirects: tuple[Node, ...] = ()
    ) -> CommandOutput:
        follower = self.follower
        if follower.node_depth >= _MAX_NODE_DEPTH:
            self.run.unknown("commands are nested too deeply to be followed")
            return DARK
        follower.node_depth += 1
        self.run.budget.spend()
        names = chosen(self.own_text(node), scope) if scope.choices and node.type in word_list("shell.split") else ()
        if names:
            outputs = each_way(names, scope, self.run, lambda: self._statement(node, scope, stdin, redirects))
            out = either(outputs)
        else:
            out = self._statement(node, scope, stdin, redirects)
        follower.node_depth -= 1
        return out

    def _statement(self, node: Node, scope: Scope, stdin: CommandOutput, redirects: tuple[Node, ...]) -> CommandOutput:
        kind = node.type
        if kind == "command":
            return self.command(node, scope, stdin, redirects)
        if kind == "redirected_statement":
            return self.redirected(node, scope, stdin, redirects)
        if kind == "pipeline":
            return self.pipeline(node, scope, stdin, redirects)
        if kind == "list":
            return self.chain(node, scope, stdin, redirects)
        if redirects:
            return self._compound_redirected(node, scope, stdin, redirects)
        if kind in BLOCKS:
            return self.sequence(node, scope, stdin)
        return self._other(node, scope, stdin)

    def _other(self, node: Node, scope: Scope, stdin: CommandOutput) -> CommandOutput:
        kind = node.type
        if kind == "subshell":
            return self.sequence(node, scope.fork(), stdin)
        if kind == "for_statement":
            return self.loop(node, scope, stdin)
        if kind in ("while_statement", "c_style_for_statement"):
            return self.while_loop(node, scope, stdin)
        if kind == "if_statement":
            return self.branches(node, scope, stdin)
        if kind == "case_statement":
            return self.cases(node, scope, stdin)
        if kind == "variable_assignment":
            self.assign(node, scope)
        elif kind == "variable_assignments":
            for part in node.named_children:
                self.assign(part, scope)
        elif kind == "declaration_command":
            self.declaration(node, scope)
            if not any(part.type in ("variable_assignment", "variable_name") for part in node.named_children):
                return CommandOutput(None, frozenset({"environment"}))  # `export -p`, `declare -x`: it lists them
        elif kind == "unset_command":
            self.follower.start(["unset", *self.words(node.children[1:], scope)], scope, NOTHING, self.via)
        elif kind == "function_definition":
            self.define(node, scope)
        elif kind != "comment":
            self.visit_words(node, scope)
        return NOTHING

    def sequence(
        self, node: Node, scope: Scope, stdin: CommandOutput, redirects: tuple[Node, ...] = ()
    ) -> CommandOutput:
        """Statements one after the other; redirections that the grammar hung on a list belong to its last command."""
        children = [
            child for child in node.children if child.type == "&" or (child.is_named and child.type != "comment")
        ]
        outputs = []
        for number, child in enumerate(children):
            following = children[number + 1].type if number + 1 < len(children) else ""
            if child.type in STATEMENTS:
                inner = scope.fork() if following == "&" else scope
                outputs.append(self.statement(child, inner, stdin, () if following else redirects))
            elif child.type == "&":
                continue
            elif child.type in REDIRECTS:
                apply_writes(self.redirections([child], scope), NOTHING, scope, self.run)
            else:
                self.visit_words(child, scope)
        return joined(outputs)

    def pipeline(self, node: Node, scope: Scope, stdin: CommandOutput, redirects: tuple[Node, ...]) -> CommandOutput:
        stages = [child for child in node.named_children if child.type != "comment"]
        flow = stdin
        for number, stage in enumerate(stages):
            is_last = number == len(stages) - 1
            flow = self.statement(stage, scope.fork(), flow, redirects if is_last else ())
        return flow

    def redirected(self, node: Node, scope: Scope, stdin: CommandOutput, outer: tuple[Node, ...]) -> CommandOutput:
        children = node.children
        redirects = tuple(child for child in children if child.type in REDIRECTS)
        body = next((child for child in children if child.type not in REDIRECTS and child.is_named), None)
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

    def _after_heredoc(self, node: Node, scope: Scope, out: CommandOutput) -> CommandOutput:
        """`cat <<EOF | sh` and `… <<EOF && next`: the grammar keeps what follows inside the here-document's node."""
        for child in node.named_children:
            if child.type == "pipeline":
                out = self.pipeline(child, scope, out, ())
            elif child.type in STATEMENTS:
                self.statement(child, scope, NOTHING)
        return out

    def _compound_redirected(
        self, node: Node, scope: Scope, stdin: CommandOutput, nodes: tuple[Node, ...]
    ) -> CommandOutput:
        resolved = self.redirections(nodes, scope)
        for redirect in resolved:
            if redirect.op.startswith("<"):
                stdin = redirect.content
        out = self._statement(node, scope, stdin, ())
        return apply_writes(resolved, out, scope, self.run)

    def command(self, node: Node, scope: Scope, stdin: CommandOutput, outer: tuple[Node, ...]) -> CommandOutput:
        run = self.run
        words: list[Node] = []
        assignments: list[Node] = []
        redirects: list[Node] = list(outer)
        for child in node.children:
            kind = child.type
            if kind in REDIRECTS:
                redirects.append(child)
            elif kind == "variable_assignment":
                assignments.append(child)
            else:
                words.append(child)
        lost = self.between(node, outer[0]) if outer else ""
        if outer and words and words[-1].type == "number" and words[-1].end_byte == outer[0].start_byte:
            words.pop()  # `cmd 0< file`: the grammar takes the descriptor for a word
        for place in redirects:
            if place.type == "heredoc_redirect":
                words += [extra for extra in place.named_children if extra.type in _WORDS]
            elif place.type == "file_redirect":
                words += extra_words(place)
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
            # `IFS=: read a b` leaves a and b behind.
            scope.take(inner, {self.text(part).partition("=")[0].rstrip("+") for part in assignments})
        if run.substituted:
            out = CommandOutput(out.text, out.labels | run.substituted)
        run.substituted = before
        return apply_writes(resolved, out, scope, run, argv) if resolved else out

    def define(self, node: Node, scope: Scope) -> None:
        self.run.budget.spend(_FUNCTION)
        name_node = node.child_by_field_name("name")
        body = node.child_by_field_name("body")
        if name_node is None or body is None:
            self.run.unknown("the command does not parse as bash")
            return
        name = plain(expand_one(self.text(name_node), Expansions(self.run, self.via, scope)))
        scope.functions[name] = ((body, self.source),)
        exhaustion.judge_function(self.run, name, self.text(body), scope.functions)
