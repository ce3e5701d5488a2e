"""The letters of array axes and the keys of a batch: the vocabulary all other modules share.

Axis letters, the same in annotations, suffixes of local names and einsum strings:

    B batch            T query position (the side that reads)   S key position (the side that is read)
    M memory           D d_model                                E embedding width
    F d_ff             N heads                                  G key/value heads
    H head_dim         V vocabulary                             L layers
    P relative positions or buckets                             C classes
    K predicted positions                                       R rows of a host's batch

Logical axes of parameters and activations (mapped to mesh axes in `t2t.sharding`): batch, length, embed, mlp, heads,
kv_heads, head, vocab, layers, types, positions.

Keys of a batch are seqio's, for each side X of `encoder` and `decoder`:

    X_input_tokens     [B, T] int32    what the model reads
    X_target_tokens    [B, T] int32    what it should predict at each position
    X_loss_weights     [B, T] float32  factor of each position's loss (0 = none)
    X_positions        [B, T] int32    position within the example; absent = 0, 1, 2, ... within each segment
    X_segment_ids      [B, T] int32    0 = padding, k = k-th example of the row; absent = no padding, one example
    X_token_types      [B, T] int32    sentence A = 0, sentence B = 1 (`token_types` is short for the only side)

    X_language_ids     [B, T] int32    language of each token, -1 = none, of an encoder that embeds languages (XLM)

and `encoder_predict_positions`, `encoder_predict_targets`, `encoder_predict_weights` [B, K] (masked language modelling
at K positions of each row), `decoder_causal_attention` [B, T] (1 over the start token and the prefix of a prefix-LM),
`next_sentence_labels` [B] (0 = the second segment of the row follows its first, 1 = it does not, -1 = no pair),
`permutation_mask` [B, T, T] (1 = position t may not read position s: the order in which XLNet predicts)
and `encoder_reversed` [B] (1 = the text of the row runs backwards).
"""

from collections.abc import Mapping

import numpy as np
from jax import Array

Batch = Mapping[str, Array | np.ndarray]
"""The arrays of one (micro-)batch by key."""
