"""Gradient descent on ten rows, step by step, as on paper: y = slope * x + b, squared loss, from zero."""

import pandas as pd

from tabsym import WideSGDRegressor

table = pd.DataFrame({"x": range(1, 11), "y": [1.5, 3.5, 4.0, 6.5, 7.5, 8.0, 10.5, 11.0, 13.5, 14.0]})
plain = {"optimizer": "sgd", "learning_rate": 0.01, "standardize": False, "coef_init": 0.0, "shuffle": False}


def show(step, model):
    slope, b = (model.coefs_[name]["value"].iloc[0] for name in ("slope", "b"))
    print(f"{step:>4}  slope {slope:.3f}  b {b:.3f}")


print("batch: every step uses all ten rows")
model = WideSGDRegressor("y ~ slope[1] * x + b[1]", batch_size="full", **plain)
for step in range(1, 6):
    show(step, model.partial_fit(table))

print("online: every step uses one row, in order")
model = WideSGDRegressor("y ~ slope[1] * x + b[1]", batch_size=1, **plain)
for row in range(10):
    show(row + 1, model.partial_fit(table.iloc[[row]]))
