"""Text infilling by inference: TIGS and the methods it is compared with."""

__version__ = "0.1.0"
