"""Tasks, corruption, packing and the input pipeline: the only place in t2t that imports TensorFlow and seqio."""
