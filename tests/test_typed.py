"""Values become instances of a type, also when many threads ask for it at once."""

import subprocess
import sys
import textwrap
from pathlib import Path

import msgspec
import pytest

from hermes.typed import convert, from_json, from_msgpack, json_decoder

SRC = Path(__file__).resolve().parents[1] / "src"


class Inner(msgspec.Struct):
    count: int


class Outer(msgspec.Struct):
    inner: Inner
    names: tuple[str, ...] = ()


def test_each_way_gives_the_same_value() -> None:
    plain = {"inner": {"count": 3}, "names": ["a"]}
    wanted = Outer(Inner(3), ("a",))

    assert convert(plain, Outer) == wanted
    assert from_json(msgspec.json.encode(plain), Outer) == wanted
    assert from_json('[{"count": 1}]', list[Inner]) == [Inner(1)]
    assert from_msgpack(msgspec.msgpack.encode(plain), Outer) == wanted
    assert json_decoder(Outer).decode(b'{"inner": {"count": 3}, "names": ["a"]}') == wanted


def test_text_is_a_number_only_where_that_is_asked_for() -> None:
    assert convert({"count": "3"}, Inner, strict=False) == Inner(3)
    with pytest.raises(msgspec.ValidationError):
        convert({"count": "3"}, Inner)


def test_a_value_that_does_not_fit_is_refused_every_time() -> None:
    for _ in range(2):
        with pytest.raises(msgspec.ValidationError, match=r"at `\$.inner.count`"):
            convert({"inner": {"count": None}}, Outer)


def test_threads_that_meet_a_type_at_the_same_time_all_get_their_value() -> None:
    """With `msgspec.convert` itself this ends in a segmentation fault."""
    code = """
        import sys, threading
        from msgspec import defstruct
        from hermes.typed import convert

        def all_at_once(number, threads=8):
            inner = defstruct("Inner", [(f"field_{i}", "dict[str, list[int | None]]") for i in range(30)])
            outer = defstruct("Outer", [("inner", inner), ("number", int)])
            given = {"inner": {f"field_{i}": {"a": [i, None]} for i in range(30)}, "number": number}
            together = threading.Barrier(threads)

            def meet():
                together.wait()
                assert convert(given, outer).inner.field_29 == {"a": [29, None]}
                done.append(number)

            workers = [threading.Thread(target=meet) for _ in range(threads)]
            for worker in workers:
                worker.start()
            for worker in workers:
                worker.join()

        done = []
        sys.setswitchinterval(1e-5)
        for number in range(60):
            all_at_once(number)
        print(len(done))
    """

    ran = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, env={"PYTHONPATH": str(SRC)}
    )

    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "480\n", "")
