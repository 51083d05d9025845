"""
Numbers: fine bins held together
================================

``numeric="smooth"``, the default, cuts a number into many bins and holds neighbours together by a random walk, whose
variance is estimated. A smooth effect comes out smooth, and a jump stays a jump.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from tabsym import WideRegressor

rng = np.random.default_rng(0)
age = rng.uniform(18, 90, 3_000)


def effect(x):
    return 1.5 * np.sin(x / 11) + 2.0 * (x >= 65)  # a wave, and a jump at 65


X = pd.DataFrame({"age": age})
y = effect(age) + rng.normal(0, 1, len(age))
grid = pd.DataFrame({"age": np.linspace(18, 90, 500)})

# %%
fig, ax = plt.subplots(figsize=(8, 4.5), layout="constrained")
ax.plot(age, y, ".", color="lightgrey", markersize=2)
ax.plot(grid["age"], effect(grid["age"]), color="black", linewidth=1, label="truth")
for numeric, colour in {"smooth": "tab:blue", "modl": "tab:orange", "linear": "tab:green"}.items():
    model = WideRegressor(loss="squared_error", numeric=numeric).fit(X, y)
    ax.plot(grid["age"], model.predict(grid), color=colour, label=f'numeric="{numeric}"')
ax.set(xlabel="age", ylabel="target", title="One number, three ways to take it")
ax.legend()
