"""What deciding on a command costs: microseconds by length, and proof that no shape of text is worse than linear.

Run: python bench/approval.py
"""

import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

from hermes.tools.approval import analyse, detect_dangerous_command

_LINE = (
    "git log --oneline -n 20 --author=me | grep -v fix && npm run test -- --watch=false > out.txt 2>&1; "
    "echo done; ls -la ."
)
_SHAPES = [
    "\n",
    " ",
    ";",
    "a;",
    "a|",
    "a&&",
    "'",
    '"',
    "`",
    "$(",
    "({",
    "<<A ",
    "<(",
    ")",
    "a[;",
    "{a,b}",
    "$x",
    "${x:-",
    "\\\n",
    "é",
    "rm ",
    "x=$x$x;",
    "if a; then ",
    "for i in 1 2 3; do ",
    "f(){ f;};f;",
    "bash -c '",
    "eval ",
    "sudo ",
    "xargs ",
    "\0",
]


def best_ms(action: Callable[[], object], rounds: int) -> float:
    times = []  # of the processor: other work on the machine must not count
    for _ in range(5):
        start = time.process_time()
        for _ in range(rounds):
            action()
        times.append((time.process_time() - start) / rounds)
    return min(times) * 1e3


def main() -> int:
    one = best_ms(lambda: detect_dangerous_command(_LINE), 100)
    kilo = "\n".join([_LINE] * 9)[:1024]
    many = best_ms(lambda: detect_dangerous_command(kilo), 20)
    print(f"{len(_LINE)} bytes: {one:.3f} ms (limit 0.3)")
    print(f"{len(kilo)} bytes: {many:.3f} ms (limit 3)")
    worst = 0.0
    for unit in _SHAPES:
        quarter = best_ms(lambda unit=unit: analyse((unit * 15_000)[:15_000]), 1)  # type: ignore[misc]  # bound default
        full = best_ms(lambda unit=unit: analyse((unit * 60_000)[:60_000]), 1)  # type: ignore[misc]  # bound default
        ratio = full / max(quarter, 1.0)
        worst = max(worst, ratio)
        if ratio > 8 or full > 1000:
            print(f"  {unit!r}: 15 kB {quarter:.1f} ms, 60 kB {full:.1f} ms")
    print(f"four times the text costs at most {worst:.1f} times as much (linear is 4, limit 8)")
    start = time.perf_counter()
    for garbage in ("x" * 10**6, "\0" * 10**6, "\ud800" * 10**6, "$(" * 500_000):
        detect_dangerous_command(garbage)
    print(f"4 MB of garbage: {(time.perf_counter() - start) * 1e3:.0f} ms, nothing raised")
    return 0 if one < 0.3 and many < 3 and worst < 8 else 1


if __name__ == "__main__":
    sys.exit(main())
