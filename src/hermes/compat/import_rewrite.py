"""Rewrite the imports of a file written for Hermes Agent, at the top and inside functions, while it is compiled."""

import ast

from hermes.compat.names import MODULES


def rewritten(tree: ast.Module) -> ast.Module:
    """`tree` with every import of a mapped module turned to ours; line numbers stay."""
    changed = _Imports().visit(tree)
    assert isinstance(changed, ast.Module)
    return ast.fix_missing_locations(changed)


class _Imports(ast.NodeTransformer):
    def __init__(self) -> None:
        self._count = 0

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.stmt:
        if node.level == 0 and node.module in MODULES:
            return ast.copy_location(ast.ImportFrom(MODULES[node.module], node.names, 0), node)
        return node

    def visit_Import(self, node: ast.Import) -> ast.stmt | list[ast.stmt]:
        if not any(alias.name in MODULES for alias in node.names):
            return node
        return [ast.copy_location(statement, node) for alias in node.names for statement in self._one(alias)]

    def _one(self, alias: ast.alias) -> list[ast.stmt]:
        ours = MODULES.get(alias.name)
        if ours is None:
            return [ast.Import([alias])]
        if alias.asname is not None or "." not in alias.name:
            return [ast.Import([ast.alias(ours, alias.asname or alias.name)])]
        # `import tools.registry` binds `tools`: load the submodule, then bind its root.
        self._count += 1
        root = alias.name.partition(".")[0]
        return [
            ast.Import([ast.alias(ours, f"_hermes_compat_{self._count}")]),
            ast.Import([ast.alias(MODULES[root], root)]),
        ]
