"""RoBERTa's FULL-SENTENCES and DOC-SENTENCES: as many whole sentences as fit into a sequence.

    FULL-SENTENCES   [CLS] end of a document [SEP] beginning of the next [SEP]
    DOC-SENTENCES    [CLS] sentences of one document [SEP]

Nothing is random here, and every token of the corpus is in exactly one sequence.
"""

import bisect

import numpy as np
from jaxtyping import Int

from t2t.data.documents import Documents, SequenceFrame, Sequences, ranges


def sentence_blocks(documents: Documents, *, room: int, across_documents: bool) -> Int[np.ndarray, "P 2"]:
    """The blocks of whole sentences of a corpus, in its order.

    Args:
        documents: the corpus.
        room: tokens of a block, a separator between two documents included; longer sentences are cut into pieces.
        across_documents: whether a block goes on in the next document (FULL-SENTENCES) or ends with its own.

    Returns:
        Ranges of `separated(documents, ...)`.

    Raises:
        ValueError: no room for a token.

    Reference: Liu et al., "RoBERTa", arXiv:1907.11692, section 4.2; `complete` and `complete_doc` of fairseq's
    token_block_dataset.py.

    Differs: a sentence longer than a block is cut into pieces, the last of which shares its block with what follows;
    fairseq makes a block that is too long.
    """
    if room < 1:
        raise ValueError(f"room={room}: a block holds at least one token; give longer lengths")
    sizes = np.diff(documents.bounds)
    pieces = -(-sizes // room)
    owners = np.repeat(np.repeat(np.arange(len(documents)), np.diff(documents.firsts)), pieces)
    sizes_of_pieces = np.full(int(pieces.sum()), room)
    sizes_of_pieces[np.cumsum(pieces) - 1] = sizes - (pieces - 1) * room
    stops = np.cumsum(sizes_of_pieces) + owners  # a separator stands behind each document
    starts = stops - sizes_of_pieces
    behind = np.searchsorted(owners, owners, side="right")  # the first piece of the next document
    blocks, i = [], 0
    while i < len(starts):
        stop = bisect.bisect_right(stops, int(starts[i]) + room, i + 1)
        stop = stop if across_documents else min(stop, int(behind[i]))
        blocks.append((int(starts[i]), int(stops[stop - 1])))
        i = stop
    return np.array(blocks, np.int64).reshape(-1, 2)


def separated(documents: Documents, separator: int) -> Int[np.ndarray, " N"]:
    """The tokens of all documents with a separator between each two.

    >>> separated(Documents.of_lists([[[5], [6]], [[7]]]), 2)
    array([5, 6, 2, 7], dtype=int32)
    """
    return np.insert(documents.tokens, documents.bounds[documents.firsts[1:-1]], np.int32(separator))


def finish_blocks(text: Int[np.ndarray, " N"], blocks: Int[np.ndarray, "P 2"], *, frame: SequenceFrame) -> Sequences:
    """The sequences of blocks: bos, the block, eos.

    Args:
        text: what `separated` gives, with eos as the separator.
        blocks: ranges of it.
        frame: of the sequences; blocks have room for `frame.room + 1` tokens.
    """
    sizes = blocks[:, 1] - blocks[:, 0]
    lengths = sizes + frame.has_bos + 1
    out, starts = frame.blank(lengths)
    out[ranges(starts + frame.has_bos, sizes)] = text[ranges(blocks[:, 0], sizes)]
    return Sequences(tokens=out, lengths=lengths)
