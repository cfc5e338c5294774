"""Data sets. So far the embedded digits."""

from spikformer.data.digits import Split, load_digits

__all__ = ["Split", "load_digits"]
