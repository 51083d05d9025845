"""Fit the coefficients of a design: to the optimum with variances by REML (`newton`), or by stochastic gradient
(`sgd`).
"""
