"""Linen layers: each file holds a config dataclass with make() and the module it makes."""
