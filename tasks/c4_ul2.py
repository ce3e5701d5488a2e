"""UL2's mixture of denoisers on C4 (tasks/c4.py says how the data are prepared).

    c4_ul2   c4_ul2_40_40_20      the two published mixtures of these tasks, each named c4_ul2_ and:
    r3_15   r8_15   x3_50   x8_50   x64_15   x64_50   s25   s50

They need a vocabulary with mode tokens and 128 sentinels at 512 inputs: t2t vocab train --modes --sentinels 300. Each
of the seven tasks of a mixture keeps its own cut of the corpus in memory.

Reference: Tay et al., "UL2: Unifying Language Learning Paradigms", arXiv:2205.05131, section 3.1.
"""

import importlib

from t2t.data import examples, ul2

importlib.import_module("tasks.c4")
ul2.add_ul2("c4", examples.get_task("c4_span_corruption").source)
