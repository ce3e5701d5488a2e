"""Model families as data: presets, Hugging Face name tables, tokenizer kinds."""
