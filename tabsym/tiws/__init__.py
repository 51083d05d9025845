"""Estimates for categories that are not in the training data, from what the other columns of their rows say."""
