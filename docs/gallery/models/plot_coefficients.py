"""
A coefficient for each category
===============================

A wide model has one coefficient for each category, with a standard deviation. Here the truth is known: the table is
generated, and the points are compared with the factors that made it.
"""

import matplotlib.pyplot as plt
import numpy as np

from tabsym import WideRegressor
from tabsym.datasets import make_retail

sales, truth = make_retail(5_000, return_truth=True)
model = WideRegressor(loss="gamma", interactions=[("group", "week")]).fit(sales, "sales")

colours = model.coefs_["colour"].drop(index=[None], errors="ignore").sort_values("value")
true = np.log(truth.colour[colours.index])
true -= true.mean()  # coefficients are about the mean of their term

# %%
# Behind the log link of the gamma loss, a coefficient of .1 is 10.5 % more sales. Colours with few rows have wide
# intervals, and are shrunk towards the mean.

fig, ax = plt.subplots(figsize=(7, 7), layout="constrained")
rows = range(len(colours))
ax.errorbar(colours["value"], rows, xerr=1.96 * colours["sd"], fmt="o", capsize=2, label="estimate, 95 % interval")
ax.plot(true, rows, "x", color="tab:orange", label="truth")
ax.set_yticks(rows, [f"{name} ({n})" for name, n in zip(colours.index, colours["rows"])])
ax.axvline(0, color="grey", linewidth=0.8)
ax.set(xlabel="effect on the logarithm of sales", title="Colours, with their training rows")
ax.legend()

# %%
inside = ((true - colours["value"]).abs() < 1.96 * colours["sd"]).mean()
print(f"truth inside the interval: {inside:.0%} of {len(colours)} colours")
