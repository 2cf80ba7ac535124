"""Which of git's settings start nothing, and so are taken over from commands: what starts something has no end."""

import re
from collections.abc import Sequence

_WORDS = {
    "branch": "remote merge rebase pushremote description vscode-merge-base gh-merge-base github-pr-owner-number",
    "remote": "url pushurl fetch tagopt prune prunetags skipdefaultupdate skipfetchall promisor partialclonefilter",
    "submodule": "url active branch ignore shallow update fetchrecursesubmodules",
    "user": "name email useconfigonly",
    "author": "name email",
    "committer": "name email",
    "core": (
        "repositoryformatversion filemode bare logallrefupdates ignorecase precomposeunicode symlinks autocrlf eol"
        " safecrlf quotepath abbrev whitespace sparsecheckout sparsecheckoutcone untrackedcache preloadindex longpaths"
        " splitindex compression bigfilethreshold commentchar"
    ),
    "extensions": "worktreeconfig partialclone objectformat refstorage preciousobjects",
    "init": "defaultbranch",
    "pull": "rebase ff octopus",
    "push": "default autosetupremote followtags",
    "fetch": "prune prunetags parallel writecommitgraph recursesubmodules",
    "merge": "ff conflictstyle renames renamelimit stat log directoryrenames",
    "rebase": "autosquash autostash updaterefs stat abbreviatecommands missingcommitscheck",
    "diff": "renames renamelimit algorithm colormoved mnemonicprefix noprefix context submodule ignoresubmodules",
    "status": "short branch showuntrackedfiles submodulesummary",
    "log": "date decorate follow abbrevcommit",
    "commit": "verbose status cleanup",
    "tag": "sort",
    "rerere": "enabled autoupdate",
    "gc": "auto autopacklimit pruneexpire",
    "pack": "threads window depth compression",
    "index": "version threads",
    "feature": "manyfiles experimental",
    "stash": "showpatch showstat",
    "advice": ".*",
    "color": ".*",
    "column": ".*",
    "lfs": "repositoryformatversion",
}
_KEY = re.compile(
    "|".join(rf"{section}\.(?:.+\.)?(?:{names.replace(' ', '|')})" for section, names in _WORDS.items()), re.DOTALL
)
# `ext::` and other helpers name a program; so do a leading dash, which an option begins with, and `!` of an update.
_STARTS = re.compile(r"!|-|[\w+.-]+::")


def is_harmless(key: str, values: Sequence[str]) -> bool:
    """Whether git starts nothing because of this setting, whatever it does otherwise."""
    return bool(_KEY.fullmatch(key.lower())) and not any(_STARTS.match(value.strip()) for value in values)
