"""
An interaction: the season of each product group
================================================

``interactions="auto"``, the default, takes the pairs of columns that lower the held-out loss, or you name them.
In these sales every product group has a season of its own: swimwear in one part of the year, coats in another.
"""

import matplotlib.pyplot as plt
import numpy as np

from tabsym import WideRegressor
from tabsym.datasets import make_retail

sales, truth = make_retail(20_000, return_truth=True)
model = WideRegressor(loss="gamma", interactions=[("group", "week")]).fit(
    sales[["group", "week", "size", "sales"]], "sales"
)
# (``interactions="auto"`` finds this pair, too; naming it saves the search.)

pairs = model.coefs_["group:week"]["value"].unstack()
estimate = pairs.add(model.coefs_["group"]["value"], axis=0).add(model.coefs_["week"]["value"], axis=1)
true = np.log(truth.season)

# %%
# The picture has the season as it was made, and as it was estimated from some twenty rows for each cell.

fig, axes = plt.subplots(1, 2, figsize=(11, 4.5), sharey=True, layout="constrained")
for ax, table, title in zip(axes, (true, estimate.reindex_like(true)), ("truth", "model")):
    centred = table.sub(table.mean(axis=1), axis=0)
    image = ax.imshow(centred, aspect="auto", cmap="RdBu_r", vmin=-0.9, vmax=0.9)
    ax.set(title=title, xlabel="week")
axes[0].set_yticks(range(len(true)), true.index)
fig.colorbar(image, ax=axes, label="effect on the logarithm of sales")
