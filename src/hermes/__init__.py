"""Hermes Runtime: a model works with tools in a bounded loop, and every step is durable."""

__version__ = "0.1.0"
