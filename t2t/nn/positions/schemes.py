"""The position schemes that a stack or a block may have."""

from t2t.nn.positions.alibi import ALiBi
from t2t.nn.positions.relative import RelativeEmbeddings
from t2t.nn.positions.rotary import Rotary
from t2t.nn.positions.t5_bias import T5Bias

Position = T5Bias | Rotary | ALiBi | RelativeEmbeddings
"""Any position scheme: a config with `make(num_heads, head_dim=...)`, whose module maps a context to a context."""
