"""Evaluating a model: sampling it, grading what it says, and what that comes to. `run` joins the parts."""
