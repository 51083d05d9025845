"""Optimizers with their numbers, for the `optimizer` of the online models: names and defaults are torch.optim's."""

from tabsym.solvers.sgd.options import SGD, Adagrad, Adam, RMSprop

__all__ = ["SGD", "Adagrad", "Adam", "RMSprop"]
