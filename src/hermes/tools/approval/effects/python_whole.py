"""Python code as a whole: what it uses up, whom it ends, what it sends away."""

import ast

from hermes.tools.approval.budget import Budget
from hermes.tools.approval.command_text import words
from hermes.tools.approval.effects.python_files import PythonFiles, table
from hermes.tools.approval.effects.python_names import last_name, nodes_of
from hermes.tools.approval.effects_model import Severity
from hermes.tools.approval.paths import is_credential, is_private, resolve

_LOOPS = (ast.While, ast.For, ast.ListComp, ast.GeneratorExp, ast.SetComp)
_ENDS = (ast.Break, ast.Return, ast.Raise, ast.Yield, ast.Await)
_WAITS = frozenset(
    words("sleep wait join input recv accept get read readline communicate poll select run call check_call exit")
)
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
    if calls & _WAITS or any(isinstance(node, _ENDS) for node in inside):
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
                if "://" not in path and is_private(resolve(path, cmd.scope, run), run.places):
                    cmd.add("exfiltration", (node.value,))
        elif isinstance(node, ast.BinOp | ast.JoinedStr) or (
            isinstance(node, ast.Call) and values.dotted(node.func).endswith((".join", ".joinpath", "Path"))
        ):
            for path in code.paths([node]):
                if path.startswith(run.places.home) and is_credential(resolve(path, cmd.scope, run), run.places):
                    cmd.add("exfiltration", (path,))
        elif (
            isinstance(node, ast.Attribute | ast.Call)
            and id(node) not in fine
            and values.dotted(node) in ("os.environ", "os.environ.items()", "os.environ.copy()")
        ):
            cmd.add("exfiltration")
