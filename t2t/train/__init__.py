"""The training loop, the step, the optimizers and the checkpoints."""
