"""Stochastic gradient descent with the gradient estimator for symbolical features (GSE) or the mean gradient.

`loop` (epochs, the learning rate, stopping, the state of a training) over `kernels` (one epoch); `options` (optimizers,
schedules) and `rules` define the updates.
"""
