"""A vocabulary that ends its process, in a module that workers import quickly."""

import os

from t2t.vocabulary import ByteVocabulary


class Deadly(ByteVocabulary):
    """Ends the process that meets a certain word."""

    def _encode_batch(self, texts):
        if any("fatal" in text for text in texts):
            os._exit(9)
        return super()._encode_batch(texts)
