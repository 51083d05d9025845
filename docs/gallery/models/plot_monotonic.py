"""
A direction that an effect must have
====================================

``monotonic_cst={"price": -1}`` says that demand does not rise with the price. The fit is the optimum under that
constraint: flat where the free curve rises, and the same where it falls.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from tabsym import WideRegressor

rng = np.random.default_rng(1)
price = rng.uniform(5, 30, 400)
y = rng.poisson(np.exp(3.0 - 0.05 * price))
X = pd.DataFrame({"price": price})
grid = pd.DataFrame({"price": np.linspace(5, 30, 400)})

free = WideRegressor(loss="poisson", numeric="quantile").fit(X, y)
falling = WideRegressor(loss="poisson", numeric="quantile", monotonic_cst={"price": -1}).fit(X, y)

# %%
fig, ax = plt.subplots(figsize=(8, 4.5), layout="constrained")
ax.plot(price, y, ".", color="lightgrey", markersize=3)
ax.plot(grid["price"], free.predict(grid), color="tab:orange", label="free")
ax.plot(grid["price"], falling.predict(grid), color="tab:blue", label='monotonic_cst={"price": -1}')
ax.plot(grid["price"], np.exp(3.0 - 0.05 * grid["price"]), color="black", linewidth=1, label="truth")
ax.set(xlabel="price", ylabel="units sold", title="Bins of a price, free and falling")
ax.legend()
