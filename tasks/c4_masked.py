"""Masked language modelling on C4 at other rates than BERT's (tasks/c4.py says how the data are prepared).

    c4_mlm_30     30 % of a row's tokens, as many of every row, 80/10/10 (ModernBERT)

Reference: Warner et al., ModernBERT, arXiv:2412.13663, section 2.2; Wettig et al., "Should You Mask 15% in Masked
Language Modeling?", arXiv:2202.08005.
"""

import importlib

from t2t.data import examples, registry
from t2t.data.masked_tokens import MaskedTokens

importlib.import_module("tasks.c4")
registry.add_objective("c4_mlm_30", examples.get_task("c4_mlm").source, MaskedTokens(rate=0.3, count="exact"))
