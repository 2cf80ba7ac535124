"""A dataset: JSON lines with a prompt each. Read once for its places, then sample by sample, so any length fits."""

import hashlib
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, field

from hermes.disk_trouble import reason_of
from hermes.errors import UserError
from hermes.state.batch_rows import SampleKey

MAX_LINE_BYTES = 16 * 1024 * 1024
TOLD = 20  # bad lines that are kept with their reason; the others are counted
_PROMPT_WANTED = 'an object with a "prompt", a text that is not blank'


class Sample(Struct, frozen=True, kw_only=True):
    """One line: what is asked, and where."""

    index: int
    prompt: str
    image: str = ""
    cwd: str = ""

    @property
    def digest(self) -> str:
        """Of everything that the sample asks for."""
        words = "\0".join((self.prompt, self.image, self.cwd))
        return hashlib.sha256(words.encode("utf-8", "surrogatepass")).hexdigest()


class Dataset(Struct):
    """The valid lines of a file, by index."""

    path: Path
    places: "array[int]"  # where each valid line begins
    bad: list[tuple[int, str]] = field(default_factory=list)  # line number and what is wrong with it
    bad_count: int = 0

    def __len__(self) -> int:
        return len(self.places)

    def sample(self, index: int) -> Sample:
        """The sample at this place; `UserError` when the file has changed under the run."""
        try:
            with self.path.open("rb") as file:
                file.seek(self.places[index])
                found = _sample(file.readline(), index)
        except OSError as error:
            raise UserError(f"cannot read the dataset {str(self.path)!r}: {reason_of(error)}") from error
        if isinstance(found, str):
            raise UserError(f"{str(self.path)!r} has changed while it was read: sample {index} is gone")
        return found

    def keys(self) -> Iterator[SampleKey]:
        """All samples by place and digest."""
        with self.path.open("rb") as file:
            for index, place in enumerate(self.places):
                file.seek(place)
                found = _sample(file.readline(), index)
                if isinstance(found, Sample):
                    yield SampleKey(index, found.digest)


def read_dataset(path: Path, most: int | None = None) -> Dataset:
    """Look through the file; `UserError` when it cannot be read or has no valid line. At most `most` samples."""
    found = Dataset(path, array("Q"))
    place = 0
    if path.exists() and not path.is_file():
        raise UserError(f"the dataset {str(path)!r} is no file; it is read more than once, so write it to one first")
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                at, place = place, place + len(line)
                if not line.strip():
                    continue
                if most is not None and len(found) >= most:
                    break
                sample = _sample(line, len(found))
                if isinstance(sample, Sample):
                    found.places.append(at)
                    continue
                found.bad_count += 1
                if len(found.bad) < TOLD:
                    found.bad.append((number, sample))
    except OSError as error:
        raise UserError(f"cannot read the dataset {str(path)!r}: {reason_of(error)}") from error
    if not found.places:
        why = f"; line {found.bad[0][0]}: {found.bad[0][1]}" if found.bad else ""
        raise UserError(f"{str(path)!r} has no line that is a sample{why}. A sample is {_PROMPT_WANTED}")
    return found


def _sample(line: bytes, index: int) -> Sample | str:
    """The sample of a line, or what is wrong with it."""
    if len(line) > MAX_LINE_BYTES:
        return f"longer than {MAX_LINE_BYTES // 1024 // 1024} MB"
    try:
        raw = msgspec.json.decode(line.lstrip(b"\xef\xbb\xbf"))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return f"no JSON ({error})"
    if not isinstance(raw, dict):
        return f"no JSON object; wanted is {_PROMPT_WANTED}"
    prompt = raw.get("prompt")
    if not isinstance(prompt, str) or not prompt.strip():
        return f"without a prompt; wanted is {_PROMPT_WANTED}"
    words: dict[str, Any] = {"image": raw.get("image") or raw.get("docker_image") or "", "cwd": raw.get("cwd") or ""}
    for name, value in words.items():
        if not isinstance(value, str):
            return f"{name} is a text, not {value!r}"
    return Sample(index=index, prompt=prompt, **words)
