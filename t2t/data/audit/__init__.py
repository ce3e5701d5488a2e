"""What a corpus is made of, and what should not be in it: statistics, duplicates, text of evaluation sets."""
