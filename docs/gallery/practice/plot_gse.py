"""
GSE: the gradient of infrequent categories in batches
=====================================================

In a batch of 256 rows an infrequent category occurs once, and gets 1/256 of its gradient. ``gradient="gse"`` updates
each category by the mean gradient of its own rows, as if it were alone in the batch.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from tabsym import WideSGDRegressor

rng = np.random.default_rng(0)
share = 1 / np.arange(1, 501)
codes = rng.choice(500, 20_000, p=share / share.sum())  # Zipf's frequencies
effect = rng.normal(0, 1, 500)
X = pd.DataFrame({"word": [f"w{k}" for k in codes]})
y = effect[codes] + rng.normal(0, 0.5, len(codes))

options = {"optimizer": "sgd", "learning_rate": 0.05, "batch_size": 256, "random_state": 0}
rows = np.bincount(codes, minlength=500)
kinds = {
    "fewer than 10 rows": (rows > 0) & (rows < 10),
    "10 to 100 rows": (rows >= 10) & (rows < 100),
    "more": rows >= 100,
}

# %%
fig, axes = plt.subplots(1, 3, figsize=(11, 3.8), sharey=True, layout="constrained")
for gradient, colour in {"mean": "tab:orange", "gse": "tab:blue"}.items():
    model, errors = WideSGDRegressor(gradient=gradient, **options), []
    for _ in range(12):
        model.partial_fit(X, y)
        value = model.predict(pd.DataFrame({"word": [f"w{k}" for k in range(500)]}))
        errors.append((value - effect) ** 2)
    for ax, (kind, members) in zip(axes, kinds.items()):
        ax.plot(range(1, 13), [error[members].mean() for error in errors], color=colour, label=f'gradient="{gradient}"')
        ax.set(title=f"{members.sum()} categories, {kind}", xlabel="epochs")
axes[0].set_ylabel("squared error of the coefficients")
axes[0].set_ylim(0, None)
axes[0].legend()
