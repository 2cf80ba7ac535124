"""A tool of one's own: counts the words of a text file. Put it into ~/.hermes/tools/ to use it."""

from hermes.errors import ToolError
from hermes.seams import ToolContext
from hermes.tools.decorator import tool


@tool(toolset="words")
async def count_words(path: str, longest: int = 3, *, ctx: ToolContext) -> dict[str, object]:
    """Count the words of a text file, and tell the longest ones.

    Args:
        path: The file, relative to the workspace.
        longest: How many of the longest words to tell.
    """
    info = await ctx.environment.stat(path)
    if info is None or info.kind != "file":
        raise ToolError(f"there is no file {path!r}; look for it with search_files")
    words = (await ctx.environment.read(path)).decode("utf-8", "replace").split()
    ranked = sorted(set(words), key=lambda word: (-len(word), word))
    return {"words": len(words), "longest": ranked[:longest]}
