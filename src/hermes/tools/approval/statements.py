"""The words of a parsed statement: expanded, bound to names, put where redirections lead."""

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from hermes.tools.approval.assignments import bind
from hermes.tools.approval.command_text import SECRET, UNKNOWN
from hermes.tools.approval.grammar import LIFTED, Node
from hermes.tools.approval.lexer import SIMPLE, expand, expand_one, expand_quoted
from hermes.tools.approval.params import Expansions
from hermes.tools.approval.paths import resolve
from hermes.tools.approval.run_state import DARK, NOTHING, CommandOutput, Scope
from hermes.tools.approval.stream_flow import Redirect, read
from hermes.tools.approval.word_patterns import has_glob, plain

if TYPE_CHECKING:
    from hermes.tools.approval.shell import Follower

_ASSIGNMENT = 6  # steps
_BLANK = re.compile(r"(?:[ \t]|\\\n)*\Z")
_GLOB = re.compile(r"(?:\$\{[^}]*\}|[^*?\[$]|\$(?!\{))*[*?\[]")  # outside of `${…}`
_LIFTED = re.compile(f"{LIFTED}(\\d+){LIFTED}")
REDIRECTS = frozenset({"file_redirect", "heredoc_redirect", "herestring_redirect"})


class Phrases:
    """One parsed source: its nodes know their place in `source` only."""

    def __init__(self, follower: "Follower", source: str, via: tuple[str, ...]) -> None:
        self.follower = follower
        self.run = follower.run
        self.source = source
        self.via = via

    def text(self, node: Node) -> str:
        return self.source[node.start_byte : node.end_byte]

    def own_text(self, node: Node) -> str:
        """The statement without a compound body, whose statements are looked at one by one."""
        if node.type == "redirected_statement":
            body = node.named_children[0] if node.named_children else node
            if body.type not in ("command", "pipeline"):
                return self.source[body.end_byte : node.end_byte]
        return self.text(node)

    def between(self, node: Node, redirect: Node) -> str:
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
        self.run.budget.spend(len(spans) // 2)
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
                found = expand(raw, shell)
                if _GLOB.match(raw):
                    self.run.found.update(resolve(field, scope, self.run) for field in found if has_glob(field))
                fields += found
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
        self.run.budget.spend(_ASSIGNMENT)
        target, _, value = self.text(node).partition("=")
        before, self.run.substituted = self.run.substituted, frozenset()
        if "$(" in target or "`" in target:  # the index runs, too
            expand_one(target, Expansions(self.run, self.via, scope))
        last = node.named_children[-1] if node.named_children else node
        is_list = last.type == "array"
        if is_list:
            values = tuple(self.words(last.named_children, scope, over_lines=True))
        else:
            values = (expand_one(value, Expansions(self.run, self.via, scope)),)
        labels, self.run.substituted = self.run.substituted, before
        if "[" in target and "$" in target:
            target = expand_one(target, Expansions(self.run, self.via, scope))
        bind(target, values, scope, self.run, labels=labels, is_list=is_list)

    def declaration(self, node: Node, scope: Scope) -> None:
        words: list[str] = []
        for child in node.children:
            if child.type == "variable_assignment":
                self.assign(child, scope)
                name, _, value = self.text(child).partition("=")
                is_list = value[:2] in ("'(", '"(')  # read once more, as the words of a list
                if is_list or any(word[:1] == "-" and "n" in word for word in words[1:4]):  # or it stands for another
                    scope.put(name, (UNKNOWN,))
            else:
                words += self.words([child], scope)
        for field in words[1:]:
            if "[" in field and ("$(" in field or "`" in field):
                self.follower.script(f'echo "{plain(field)}"', scope.fork(), NOTHING, self.via)
            name, equals, value = field.partition("=")
            if equals and name.rstrip("+").isidentifier():
                bind(name, (value,), scope, self.run)

    def redirections(self, nodes: Iterable[Node], scope: Scope) -> list[Redirect]:
        found: list[Redirect] = []
        for node in nodes:
            if node.type == "heredoc_redirect":
                found.append(Redirect("<<", "", None, self._heredoc(node, scope)))
                found += self.redirections([child for child in node.children if child.type in REDIRECTS], scope)
            elif node.type == "herestring_redirect":
                words = [child for child in node.children if child.type not in ("<<<", "file_descriptor")]
                text = " ".join(self.words(words, scope))
                labels = self.run.substituted | ({"environment"} if SECRET in text else set())
                content = CommandOutput(None, labels) if UNKNOWN in text else CommandOutput(text + "\n", labels)
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
            return Redirect(op, fd, target, read(target, scope, self.run))
        return Redirect(op, fd, target)

    def _heredoc(self, node: Node, scope: Scope) -> CommandOutput:
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
        return CommandOutput(text, self.run.substituted)


def extra_words(redirect: Node) -> list[Node]:
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
