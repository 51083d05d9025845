"""Estimates for categories that are not in the training data, from the other columns of their rows."""
