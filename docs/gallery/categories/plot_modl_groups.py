"""
Groups of categories
====================

``MODLEncoder`` groups categories whose targets do not differ, as far as the rows can tell. Forty categories with three
rates become three groups: to read, or to give to a model that takes few categories.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from tabsym import MODLEncoder

rng = np.random.default_rng(0)
names = np.array([f"c{k:02d}" for k in range(40)])
rate = np.repeat([0.1, 0.3, 0.6], [14, 14, 12])
codes = rng.choice(40, 8_000, p=rng.dirichlet(np.full(40, 3.0)))
X = pd.DataFrame({"code": names[codes]})
y = rng.random(8_000) < rate[codes]

encoder = MODLEncoder().fit(X, y)
group = encoder.transform(pd.DataFrame({"code": names}))["code"].astype(str)
observed = pd.DataFrame({"rows": X.groupby("code").size(), "share": pd.Series(y).groupby(X["code"]).mean()})

# %%
fig, ax = plt.subplots(figsize=(9, 4.5), layout="constrained")
for members in dict.fromkeys(group):
    own = observed.loc[names[group == members]]
    ax.scatter(own["rows"], own["share"], label=f"a group of {len(own)}")
for value in (0.1, 0.3, 0.6):
    ax.axhline(value, color="grey", linewidth=0.8, linestyle="--")
ax.set(xlabel="rows of the category", ylabel="share of the second class", title="Forty categories, three rates")
fig.legend(loc="outside right upper")
