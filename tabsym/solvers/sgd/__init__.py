"""Stochastic gradient descent with the gradient estimator for symbolical features (GSE) or the mean gradient.

`loop` (epochs, the learning rate, stopping) over `state` (one epoch) over `kernels`; `options` (optimizers, schedules)
and `rules` define the updates.
"""
