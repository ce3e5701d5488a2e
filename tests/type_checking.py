"""The checker of annotations in tests: beartype, for which an int is a fine float, as PEP 484 says."""

from beartype import BeartypeConf, beartype

check = beartype(conf=BeartypeConf(is_pep484_tower=True))
