"""ordercast: ordered group communication over networks that lose messages."""

__version__ = "0.1.0"
__all__ = ["__version__"]
