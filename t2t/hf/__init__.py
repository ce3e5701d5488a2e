"""Reading and writing Hugging Face directories, without torch and transformers: only the tests need those."""
