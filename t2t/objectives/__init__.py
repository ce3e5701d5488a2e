"""Pretraining and training objectives: named loss terms from (models, params, batch, key)."""
