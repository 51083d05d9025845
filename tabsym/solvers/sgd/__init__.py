"""Stochastic gradient descent with the gradient estimator for symbolical features (GSE) or the mean gradient.

`loop` (epochs, learning rate, stopping) over `state` (one epoch) over `kernels`; `optimizers` and `rules` define the
updates, `auto_rate` finds a learning rate.
"""
