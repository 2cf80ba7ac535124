"""Loops, arms and chains of a script: what runs, what may run, and what is known where the ways meet."""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable

from hermes.tools.approval import exhaustion
from hermes.tools.approval.command_text import UNKNOWN
from hermes.tools.approval.grammar import Node
from hermes.tools.approval.lexer import expand_one
from hermes.tools.approval.params import Expansions
from hermes.tools.approval.run_state import CommandOutput, Scope
from hermes.tools.approval.statements import Phrases
from hermes.tools.approval.value_sets import ValueSets, back_to, merge, moment
from hermes.tools.approval.word_patterns import MAX_TEXT, is_open

_COUNTED = re.compile(r"for\s*\(\(\s*(\w+)\s*=[^;]*;[^;]*\d{3}")
_MAX_LOOP = 12
BLOCKS = frozenset(
    {"program", "compound_statement", "do_group", "elif_clause", "else_clause", "negated_command", "ERROR", "case_item"}
)
STATEMENTS = BLOCKS | {
    "command", "pipeline", "list", "subshell", "redirected_statement", "declaration_command", "unset_command",
    "variable_assignment", "variable_assignments", "while_statement", "for_statement", "function_definition",
    "test_command", "c_style_for_statement", "if_statement", "case_statement",
}  # fmt: skip


class Branches(Phrases, ABC):
    """The statements that hold other statements."""

    @abstractmethod
    def statement(
        self, node: Node, scope: Scope, stdin: CommandOutput, redirects: tuple[Node, ...] = ()
    ) -> CommandOutput:
        """Judge one statement of any kind; what it prints."""

    @abstractmethod
    def sequence(
        self, node: Node, scope: Scope, stdin: CommandOutput, redirects: tuple[Node, ...] = ()
    ) -> CommandOutput:
        """Judge statements one after another; what they print together."""

    def chain(self, node: Node, scope: Scope, stdin: CommandOutput, redirects: tuple[Node, ...]) -> CommandOutput:
        """`a && b || c`: what comes behind an operator may run or not."""
        links: list[tuple[str, Node]] = []
        while node.type == "list" and len(node.children) == 3:
            left, operator, right = node.children
            links.append((operator.type, right))
            node = left
        outputs = [self.statement(node, scope, stdin)]
        failed = [moment(scope, self.run)]  # how things stand where the last command failed, or was left out
        held: ValueSets | None = None
        for number, (operator_type, right) in enumerate(reversed(links)):
            held = None
            if operator_type == "||":
                held = moment(scope, self.run)
                merge(failed, scope, self.run)
                failed = []
            outputs.append(self.statement(right, scope, stdin, redirects if number == len(links) - 1 else ()))
            failed.append(moment(scope, self.run))
            if held is not None:
                merge([*failed, held], scope, self.run)
        merge([*failed, moment(scope, self.run)] if held is not None else failed, scope, self.run)
        return joined(outputs)

    def branches(self, node: Node, scope: Scope, stdin: CommandOutput) -> CommandOutput:
        """`if`, with all that its arms may leave behind."""
        has_else = False
        outputs: list[CommandOutput] = []
        ways: list[ValueSets] = []
        for part in [node, *(child for child in node.children if child.type in ("elif_clause", "else_clause"))]:
            inner = [child for child in part.children if child.type not in ("elif_clause", "else_clause", "comment")]
            place = next((number for number, child in enumerate(inner) if child.type == "then"), 0)
            for child in inner[:place]:
                self.part(child, scope, stdin)
            has_else = has_else or part.type == "else_clause"
            self._arm(inner[place:], scope, stdin, ways, outputs)
        return self._meet(ways, scope, outputs, may_skip=not has_else)

    def cases(self, node: Node, scope: Scope, stdin: CommandOutput) -> CommandOutput:
        has_default = False
        outputs: list[CommandOutput] = []
        ways: list[ValueSets] = []
        for child in node.named_children:
            if child.type != "case_item":
                self.part(child, scope, stdin)
                continue
            has_default = has_default or self.text(child).lstrip("( ").startswith("*)")
            falls = any(end.type in (";&", ";;&") for end in child.children)
            self._arm(child.named_children, scope, stdin, ways, outputs, stays=falls)
        return self._meet(ways, scope, outputs, may_skip=not has_default)

    def _arm(
        self,
        nodes: Iterable[Node],
        scope: Scope,
        stdin: CommandOutput,
        ways: list[ValueSets],
        outputs: list[CommandOutput],
        *,
        stays: bool = False,
    ) -> None:
        before = moment(scope, self.run)
        outputs.append(joined([out for child in nodes if (out := self.part(child, scope, stdin)) is not None]))
        ways.append(moment(scope, self.run))
        if not stays:
            back_to(before, scope, self.run)

    def _meet(
        self, ways: list[ValueSets], scope: Scope, outputs: list[CommandOutput], *, may_skip: bool
    ) -> CommandOutput:
        if may_skip or not ways:
            ways.append(moment(scope, self.run))
        merge(ways, scope, self.run)
        return either(outputs)

    def part(self, child: Node, scope: Scope, stdin: CommandOutput) -> CommandOutput | None:
        """Follow what stands in a block: a statement, or words with substitutions in them."""
        if child.type in STATEMENTS:
            return self.statement(child, scope, stdin)
        if child.is_named and child.type != "comment":
            self.visit_words(child, scope)
        return None

    def loop(self, node: Node, scope: Scope, stdin: CommandOutput) -> CommandOutput:
        variable, body = node.child_by_field_name("variable"), node.child_by_field_name("body")
        if variable is None or body is None:
            return self.sequence(node, scope, stdin)
        exhaustion.judge_loop(self.run, self.text(node))
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
        distinct = list(dict.fromkeys(values)) or [UNKNOWN]  # arguments that the script may still be given
        if len(distinct) > _MAX_LOOP:
            distinct = [*distinct[:_MAX_LOOP], UNKNOWN]
        outputs = []
        ways = [moment(scope, self.run)] if not values or any(map(is_open, values)) else []
        for value in distinct:
            self.run.assigns = True
            scope.put(name, (value,))
            outputs.append(self.statement(body, scope, stdin))
            ways.append(moment(scope, self.run))
        merge(ways, scope, self.run)
        return joined(outputs)

    def while_loop(self, node: Node, scope: Scope, stdin: CommandOutput) -> CommandOutput:
        whole = self.text(node)
        exhaustion.judge_loop(self.run, whole, is_long="many" in stdin.labels)
        if counted := _COUNTED.match(whole):  # as a process number, it means all of them
            scope.put(counted[1], (UNKNOWN,))
            scope.labels[counted[1]] = frozenset({"everyone"})
            body = node.child_by_field_name("body")
            if body is not None:
                expand_one(whole.partition("))")[0], Expansions(self.run, self.via, scope))
                return self.statement(body, scope, stdin)
        lines = stdin.text.splitlines() if stdin.text else []
        if len(lines) > 1 and "read" in self.source[node.start_byte : node.end_byte]:
            picked = lines if len(lines) <= _MAX_LOOP else [*lines[:_MAX_LOOP], UNKNOWN]
            return joined([self.sequence(node, scope, CommandOutput(line, stdin.labels)) for line in picked])
        before = moment(scope, self.run)
        out = self.sequence(node, scope, stdin)
        merge([before, moment(scope, self.run)], scope, self.run)
        if scope.choices.keys() - before.choices.keys():  # what one round has set, the next one uses
            self.sequence(node, scope, stdin)
            merge([before, moment(scope, self.run)], scope, self.run)
        return out


def joined(outputs: list[CommandOutput]) -> CommandOutput:
    """The streams of several commands, one after the other."""
    if len(outputs) == 1:
        return outputs[0]
    labels: frozenset[str] = frozenset().union(*(out.labels for out in outputs))
    texts = [out.text for out in outputs if out.text is not None]
    if len(texts) != len(outputs):
        # A file with other text added is no longer the file that a person has seen.
        return CommandOutput(None, labels - {"file"} if any(texts) else labels)
    whole = "".join(texts)
    return CommandOutput(whole if len(whole) <= MAX_TEXT else None, labels)


def either(outputs: list[CommandOutput]) -> CommandOutput:
    """The stream of one of several commands: read as a script, each of them counts; as a value, it is not known."""
    texts = {out.text for out in outputs if out.text}
    whole = joined(outputs)
    return CommandOutput(whole.text, whole.labels | {"either"}) if len(texts) > 1 else whole
