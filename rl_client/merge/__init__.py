"""Weighted averages of checkpoints, read and written in pieces: alpha * high + (1 - alpha) * low."""
