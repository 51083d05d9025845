"""
A booster on top of a wide model
================================

A booster fits steps and interactions of numbers; a wide model fits many categories. ``WideBoostRegressor`` lets the
booster start from the out-of-fold predictions of the wide model, and keeps it only where it gains on rows held out.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from lightgbm import LGBMRegressor

from tabsym import WideBoostRegressor, WideRegressor
from tabsym.integrations import load_adapter

rng = np.random.default_rng(0)
n = 4_000
shop, a, b = rng.integers(0, 300, n), rng.uniform(-1, 1, n), rng.uniform(-1, 1, n)
y = rng.normal(0, 2, 300)[shop] + 3 * np.sign(a) * np.sign(b) + rng.normal(0, 1, n)  # two numbers act together
X = pd.DataFrame({"shop": [f"shop {k}" for k in shop], "a": a, "b": b})
train, test = slice(0, n // 2), slice(n // 2, n)

models = {
    "wide model": WideRegressor(loss="squared_error", interactions=None),
    "LightGBM, native categories": load_adapter("lightgbm").native("regression"),
    "wide model + LightGBM": WideBoostRegressor(
        wide=WideRegressor(loss="squared_error", interactions=None),
        booster=LGBMRegressor(n_estimators=100, n_jobs=1, verbose=-1),
        random_state=0,
    ),
}
errors = {}
for name, model in models.items():
    model.fit(X[train], y[train])
    errors[name] = np.sqrt(np.mean((model.predict(X[test]) - y[test]) ** 2))
print(pd.Series(model.shares_).round(2).to_dict())

# %%
fig, ax = plt.subplots(figsize=(8, 3), layout="constrained")
bars = ax.barh(list(errors), list(errors.values()), color=["tab:blue", "tab:grey", "tab:green"])
ax.bar_label(bars, fmt="%.2f", padding=3)
ax.axvline(1, color="black", linewidth=1, label="noise")
ax.set(xlabel="RMSE on new rows", title="300 shops, and two numbers that act together")
ax.margins(x=0.1)
ax.invert_yaxis()
ax.legend()
