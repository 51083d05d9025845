"""Pictures of predictions, of one row's explanation and of training, as functions that return matplotlib axes.

Pictures of a fitted model are its own methods: `plot`, `plot_term` and `plot_explanation`, of a MODLEncoder
`plot_partition` and `plot_grid`. All take `ax`, have no background, and read on white and on black. They need
matplotlib: ``pip install "tabsym[plot]"``.
"""

from tabsym.plots.predictions import calibration, donors, double_lift, learning_curve, lift, waterfall

__all__ = ["calibration", "donors", "double_lift", "learning_curve", "lift", "waterfall"]
