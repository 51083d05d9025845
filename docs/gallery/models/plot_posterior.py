"""
How sure is a prediction
========================

With ``n_posterior_samples`` a model keeps samples from the joint posterior of its coefficients, and ``predict`` gives
a standard deviation for each row: wide for a category with few rows, and widest for one that is unknown.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from tabsym import WideRegressor

rng = np.random.default_rng(0)
names = [f"shop {k}" for k in range(16)]
rows = np.geomspace(1, 150, 16).astype(int)
effect = rng.normal(0, 1, 16)
shop = np.repeat(names, rows)
x = rng.uniform(0, 6, len(shop))
y = 10 + np.sin(x) + np.repeat(effect, rows) + rng.normal(0, 0.8, len(shop))

model = WideRegressor(loss="squared_error", interactions=None, count_effect=False, n_posterior_samples=64)
model.fit(pd.DataFrame({"x": x, "shop": shop}), y)

# %%
# Every shop at x = 3, and a new one, for which the prediction is that of the mean shop.

asked = pd.DataFrame({"x": 3.0, "shop": [*names, "a new shop"]})
mean, sd = model.predict(asked, return_std=True)
fig, ax = plt.subplots(figsize=(8, 4.5), layout="constrained")
ax.errorbar(range(17), mean, yerr=1.96 * sd, fmt="o", capsize=3, label="prediction, 95 % interval of the mean")
ax.plot(range(16), 10 + np.sin(3.0) + effect, "x", color="tab:orange", label="true mean")
ax.set_xticks(range(17), [*rows, "new"])
ax.set(xlabel="training rows of the shop", ylabel="target at x = 3", title="Sixteen shops and an unknown one")
ax.legend()
