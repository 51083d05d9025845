"""Estimates for symbols never seen in training, from what the other columns of their rows say."""
