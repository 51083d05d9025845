"""
Shrinkage: how much to believe a category with three rows
=========================================================

The mean of a category with few rows is mostly noise. A wide model estimates the variance of a term's coefficients
(REML), and shrinks each category by it: those with few rows most. The estimates of shops with few rows are closer to
the truth than their means.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from tabsym import WideRegressor

rng = np.random.default_rng(0)
rows_of_shop = np.geomspace(1, 300, 60).astype(int)
effect = rng.normal(0, 1, 60)
shop = np.repeat([f"shop {k}" for k in range(60)], rows_of_shop)
y = np.repeat(effect, rows_of_shop) + rng.normal(0, 2, len(shop))

model = WideRegressor("w[shop] + c[1]", loss="squared_error").fit(pd.DataFrame({"shop": shop}), y)
shops = model.coefs_["w"].reindex([f"shop {k}" for k in range(60)])
intercept = model.coefs_["c"]["value"].iloc[0]
means = pd.Series(y).groupby(shop).mean()[shops.index]

# %%
fig, ax = plt.subplots(figsize=(8, 4.5), layout="constrained")
ax.plot(rows_of_shop, means - effect, "o", color="tab:grey", alpha=0.6, label="mean of the shop")
ax.plot(rows_of_shop, shops["value"] + intercept - effect, "o", color="tab:blue", label="wide model")
ax.axhline(0, color="black", linewidth=0.8)
ax.set(xscale="log", xlabel="training rows of the shop", ylabel="estimate - truth", title="Errors of sixty shops")
ax.legend()

# %%
# The variance was 1, and that of the noise 4:

print(model.variances_.loc["w", ["variance", "edf"]].round(2).to_dict(), "noise", round(model.dispersion_, 2))
