"""t2t: pretrain, transfer and ship transformer text models in JAX."""

__version__ = "0.1.0"
