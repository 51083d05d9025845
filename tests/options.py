"""Options of the wide models that tests share: what the defaults do is left out, so that a term is a term."""

ADDITIVE = {"numeric": "linear", "interactions": None, "count_effect": False}
"""A coefficient per category, a slope per number, and nothing else; variances estimated."""

GLM = ADDITIVE | {"alpha": 0.0}
"""The same without penalties."""
