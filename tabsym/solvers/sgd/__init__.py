"""Stochastic gradient descent with the gradient estimator for symbolical features (GSE) or the mean gradient.

`loop` (epochs at one rate, when they end) over `state` (one epoch) over `kernels`; `optimizers` and `rules` hold the
updates, `rates` finds a learning rate.
"""
