"""Python code, call by call and as a whole: which files it opens, writes or deletes, what it uses up, whom it ends."""

import ast
import re
from collections.abc import Iterable

from hermes.tools.approval import paths as path_rules
from hermes.tools.approval.command_text import UNKNOWN
from hermes.tools.approval.effects.python_names import last_name, nodes_of
from hermes.tools.approval.effects.python_values import MADE, PythonValues
from hermes.tools.approval.effects_model import Budget, Severity
from hermes.tools.approval.run_state import NOTHING, Command, CommandOutput
from hermes.tools.approval.tables import sections, word_list


def table(title: str) -> frozenset[str]:
    return sections("python.txt")[title]


class PythonFiles:
    """Code under judgement: what its expressions stand for, and what becomes of files."""

    cmd: Command
    values: PythonValues
    closed: set[int]
    made: dict[str, int]  # the files that the code writes, and the first line that does

    def ask(self, why: str, kind: str = "inline_code") -> None:
        self.cmd.run.add(kind, f"{why}: {self.cmd.line}")

    def _open(self, node: ast.Call, dotted: str) -> None:
        is_method = dotted.startswith("pathlib.")
        place = 0 if is_method else 1
        mode_node = next((key.value for key in node.keywords if key.arg == "mode"), None)
        if mode_node is None and len(node.args) > place:
            mode_node = node.args[place]
        modes = self.values.of(mode_node) if mode_node is not None else ["r"]
        if not any(UNKNOWN in mode or re.match(r"[rwaxnbtUc:|*+]*[wax+nc]", mode) for mode in modes):
            return
        target = next(iter(node.args), None)
        if is_method and isinstance(node.func, ast.Attribute):
            target = node.func.value
        self._write(target)
        if id(node) in self.closed and UNKNOWN in "".join(self.paths([target] if target is not None else [])):
            self.ask("code empties what it finds", "destroy_data")

    def _os_open(self, node: ast.Call) -> None:
        flags = ast.unparse(node.args[1]) if len(node.args) > 1 else ""
        if flags not in ("os.O_RDONLY", "0"):
            self._write(node.args[0] if node.args else None)

    def _file_call(self, node: ast.Call, dotted: str) -> bool:
        """The calls that delete, make, move or open up files, judged by their paths."""
        receiver = (
            node.func.value if isinstance(node.func, ast.Attribute) and dotted.startswith("pathlib.Path().") else None
        )
        operands: list[ast.expr] = [
            *([receiver] if receiver is not None else []),
            *node.args,
            *(key.value for key in node.keywords if key.arg in ("path", "src", "dst")),
        ]
        how = self.cmd.line
        run, scope = self.cmd.run, self.cmd.scope
        if dotted in table("delete") or dotted in table("delete trees"):
            for path in self.paths(operands[:1]):
                if path.startswith(MADE):
                    continue
                if UNKNOWN in path:
                    run.add("recursive_delete" if dotted in table("delete trees") else "mass_delete", how)
                else:
                    path_rules.delete_path(run, scope, path, how, recursive=dotted in table("delete trees"))
        elif dotted in table("make"):
            self._write(operands[0] if operands else None)
        elif dotted in table("copy"):
            self._write(operands[1] if len(operands) > 1 else None)
        elif dotted in table("move"):
            self._moves(operands)
        elif dotted == "os.truncate":
            self.ask("code empties a file", "destroy_data")
        elif dotted in ("os.chmod", "os.lchmod", "pathlib.Path().chmod", "os.chown", "shutil.chown"):
            mode = next(
                (
                    part.value
                    for part in operands[1:2]
                    if isinstance(part, ast.Constant) and isinstance(part.value, int)
                ),
                None,
            )
            paths = self.paths(operands[:1])
            if mode is None or dotted.endswith("chown"):
                self.ask("code changes who may use a file", "open_permissions")
            else:
                self.cmd.nested(["chmod", f"{mode:o}", *paths], NOTHING)
        elif dotted == "os.chdir":
            for path in self.paths(operands[:1]):
                scope.cwd = path_rules.resolve(path, scope, run)
        else:
            return dotted in table("link")  # those were followed first
        return True

    def _link(self, node: ast.Call) -> None:
        """What is written through a link that the code itself makes lands where that leads."""
        dotted = self.values.dotted(node.func)
        if dotted not in table("link"):
            return
        named = [key.value for key in node.keywords if key.arg in ("src", "dst", "target")]
        operands = [*node.args, *named][:2]
        if isinstance(node.func, ast.Attribute) and dotted.startswith("pathlib."):
            operands = [*operands[:1], node.func.value]
        if len(operands) < 2:
            self.ask(f"code calls {dotted}")
            return
        self._write(operands[1])
        run, scope = self.cmd.run, self.cmd.scope
        for target in self.paths(operands[:1]):
            path_rules.link_path(run, scope, target, self.cmd.line, is_hard="sym" not in dotted)
        for target, link in zip(self.paths(operands[:1]), self.paths(operands[1:]), strict=False):
            if UNKNOWN not in link:
                run.links[path_rules.resolve(link, scope, run)] = path_rules.resolve(target, scope, run)

    def _moves(self, operands: list[ast.expr]) -> None:
        target = next((path for path in self.paths(operands[1:2]) if UNKNOWN not in path), ".")
        for path in self.paths(operands[:1]):
            if UNKNOWN not in path and (
                path_rules.is_wide(path, self.cmd.run.places) or path_rules.matters(self.cmd, path)
            ):
                self.ask("code moves files out of reach", "move_away")
            elif UNKNOWN not in path:
                self.cmd.nested(["mv", "--", path, target], NOTHING)
        if any(path == "/dev/null" for path in self.paths(operands[1:2])):
            self.ask("code moves files out of reach", "move_away")
        self._write(operands[1] if len(operands) > 1 else None)

    def _write(self, node: ast.expr | None) -> None:
        run = self.cmd.run
        for path in self.paths([node] if node is not None else []) or [UNKNOWN]:
            if path == UNKNOWN:
                run.unknown(f"code writes to a path that is only known when it runs ({self.cmd.line})")
                continue
            path_rules.writes(self.cmd, path)
            self._made(path, node.lineno if node is not None else 0)

    def _made(self, path: str, line: int) -> None:
        """Remember a file that the code writes. What it puts there is not followed: run or imported in the same
        breath, it is text that nobody has seen.
        """
        place = path_rules.resolve(path, self.cmd.scope, self.cmd.run)
        self.cmd.run.files[place] = CommandOutput(None, frozenset({"decoded"}))
        self.made.setdefault(place, line)

    def paths(self, nodes: Iterable[ast.expr]) -> list[str]:
        home = self.cmd.run.places.home
        return [
            home + text[1:] if text == "~" or text.startswith("~/") else text
            for node in nodes
            for text in self.values.of(node)
        ]


_LOOPS = (ast.While, ast.For, ast.ListComp, ast.GeneratorExp, ast.SetComp)
_ENDS = (ast.Break, ast.Return, ast.Raise, ast.Yield, ast.Await)
_SPAWNS = frozenset({"Popen", "Process", "Thread", "system", "spawn", "fork", "popen"})
_GROWS = frozenset({"append", "extend", "write", "writelines", "update", "add", "mkdir", "touch"})
_MANY = 500


def judge_whole(code: PythonFiles, nodes: list[ast.AST], fine: set[int]) -> None:
    """Record what no single call tells; `fine` holds the expressions that are only looked at."""
    cmd, values = code.cmd, code.values
    names, run = values.modules(), cmd.run
    if any(module.startswith("tools.approval") for module in values.whole):
        run.add("own_runtime", f"code reaches into the runtime's own gate: {cmd.line}")
    forks = [node for node in nodes if isinstance(node, ast.Attribute) and node.attr in ("fork", "forkpty")]
    if forks and any(isinstance(node, _LOOPS) for node in nodes):
        cmd.add("fork_bomb", severity=Severity.HARDLINE)
    kills = [
        node for node in nodes if isinstance(node, ast.Call) and values.dotted(node.func) in ("os.kill", "os.killpg")
    ]
    if any(ast.unparse(argument) == "-1" for node in kills for argument in node.args[:1]):
        cmd.add("mass_kill", severity=Severity.HARDLINE)
    for node in nodes:
        if isinstance(node, ast.While | ast.For) and _exhausts(node, run.budget):
            run.add("exhaustion", f"a loop that starts or keeps more and more: {cmd.line}")
    if names & table("network"):
        _leaks(code, nodes, fine)
    if "socket" in names and names & {"subprocess", "pty"}:
        cmd.add("reverse_shell")


def _exhausts(loop: ast.While | ast.For, budget: Budget) -> bool:
    """Whether a loop never ends, or goes on for long, and waits for nothing of what it starts or fills."""
    inside = nodes_of(loop, budget)  # again and again, where loops are nested
    calls = {last_name(node.func) for node in inside if isinstance(node, ast.Call)}
    if calls & word_list("python_files.waits") or any(isinstance(node, _ENDS) for node in inside):
        return False
    if isinstance(loop, ast.While):
        is_endless = isinstance(loop.test, ast.Constant) and bool(loop.test.value)
        grows = any(isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add | ast.Mult) for node in inside)
        return is_endless and (bool(calls & (_SPAWNS | _GROWS)) or grows)
    rounds = [
        node.value for node in ast.walk(loop.iter) if isinstance(node, ast.Constant) and isinstance(node.value, int)
    ]
    leaves = calls & {"Popen", "Process"} or any(
        isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.rstrip().endswith("&")
        for node in inside
    )
    return bool(leaves) and max(rounds, default=0) >= _MANY


def _leaks(code: PythonFiles, nodes: list[ast.AST], fine: set[int]) -> None:
    """Private files and the environment, in code that talks to the network."""
    cmd, values, run = code.cmd, code.values, code.cmd.run
    for node in nodes:
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and node.value.strip("/")  # "/" alone joins the parts of an address
            and ("/" in node.value or node.value[:1] in ("~", "."))
        ):
            for path in code.paths([node]):
                if "://" not in path and path_rules.is_private(path_rules.resolve(path, cmd.scope, run), run.places):
                    cmd.add("exfiltration", (node.value,))
        elif isinstance(node, ast.BinOp | ast.JoinedStr) or (
            isinstance(node, ast.Call) and values.dotted(node.func).endswith((".join", ".joinpath", "Path"))
        ):
            for path in code.paths([node]):
                if path.startswith(run.places.home) and path_rules.is_credential(
                    path_rules.resolve(path, cmd.scope, run), run.places
                ):
                    cmd.add("exfiltration", (path,))
        elif (
            isinstance(node, ast.Attribute | ast.Call)
            and id(node) not in fine
            and values.dotted(node) in ("os.environ", "os.environ.items()", "os.environ.copy()")
        ):
            cmd.add("exfiltration")
