"""Transformer-XL, which transformers 5 does not have: counts are those of 4.57's classes on the meta device."""

from tests.cases import Case

CASES: tuple[Case, ...] = ()

COUNTS = {
    "transfo-xl-enwik8-base": (41_066_496, 41_066_700),
    "transfo-xl-enwik8-large": (277_278_720, 277_278_924),
    "transfo-xl-wt103": (283_885_936, 285_205_322),
    "transfo-xl-wt103-base": (150_850_870, 151_119_838),
    "transfo-xl-wt103-large": (283_885_936, 285_205_322),
}
