"""Where checkpoints along a line of averages lie between two kinds of failure, and whether beyond trained ones."""
