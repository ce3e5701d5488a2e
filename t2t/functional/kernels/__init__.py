"""Attention computed by kernels that never hold the scores, and which of them honours what."""
