"""Fit the coefficients of a design: to the optimum with REML (`newton`), or by stochastic gradient (`sgd`)."""
