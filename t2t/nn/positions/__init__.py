"""Position schemes, one file each."""
