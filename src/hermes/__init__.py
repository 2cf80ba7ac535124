"""Hermes Runtime: a model works with tools in a bounded loop, and every step is durable."""

TYPE_CHECKING = False  # `typing` itself would double the time of `hermes --version`
if TYPE_CHECKING:
    from hermes.runtime.agent import AIAgent

__all__ = ["AIAgent", "__version__"]
__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    if name == "AIAgent":
        from hermes.runtime.agent import AIAgent  # `hermes --version` loads none of it

        return AIAgent
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
