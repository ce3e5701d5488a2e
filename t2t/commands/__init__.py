"""The commands of `t2t`, one module each; light to import until they run."""
