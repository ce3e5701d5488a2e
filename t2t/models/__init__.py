"""Model topologies, one file each."""
