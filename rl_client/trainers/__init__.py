"""Adapters, one for each trainer: the difference between what it wants and `rl_client.rollout`, and nothing more."""
