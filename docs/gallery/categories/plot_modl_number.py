"""
Intervals of a number that say something about a target
=======================================================

``MODLEncoder`` cuts a number where the target changes, as often as the rows justify and no more: the partition of the
shortest description (Khiops' MODL). A column that is not informative has one interval.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from tabsym import MODLEncoder

rng = np.random.default_rng(0)
x = rng.uniform(0, 10, 2_000)
p = np.select([x < 2, x < 5, x < 6], [0.2, 0.5, 0.9], 0.35)
X = pd.DataFrame({"x": x, "noise": rng.uniform(0, 10, 2_000)})
encoder = MODLEncoder().fit(X, rng.random(2_000) < p)
print("intervals:", {name: len(encoder.parts(name)) for name in X})

# %%
intervals = encoder.parts("x")
bounds = [0.0, *encoder.partitions_["x"].bounds, 10.0]
fig, ax = plt.subplots(figsize=(8, 4.5), layout="constrained")
ax.stairs(intervals["P(True)"], bounds, fill=True, alpha=0.4, label="MODL's intervals")
grid = np.linspace(0, 10, 1_000)
true = np.select([grid < 2, grid < 5, grid < 6], [0.2, 0.5, 0.9], 0.35)
ax.plot(grid, true, color="black", linewidth=1, label="truth")
ax.set(xlabel="x", ylabel="share of the second class", ylim=(0, 1), title="Cut points are where the class changes")
ax.legend()
