"""Hugging Face import and export: the only place in t2t that imports torch, transformers or safetensors' torch side."""
