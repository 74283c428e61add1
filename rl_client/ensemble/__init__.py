"""Several evaluated checkpoints as one: pass@K of a pool at a matched budget, and whose problems differ."""
