"""
Probabilities that can be believed
==================================

With many infrequent categories, one-hot columns and a weak penalty give probabilities that are too extreme, and a
strong penalty shrinks what is certain as well. A wide model estimates how much to shrink; its probabilities are
calibrated as they are.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.calibration import calibration_curve
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.pipeline import make_pipeline

from tabsym import OneHotEncoder, WideClassifier

rng = np.random.default_rng(0)
n, n_shops = 12_000, 1_500
shop, product = rng.integers(0, n_shops, n), rng.integers(0, 40, n)
logit = rng.normal(0, 1, n_shops)[shop] + rng.normal(0, 0.7, 40)[product]
y = (rng.random(n) < 1 / (1 + np.exp(-logit))).astype(int)
X = pd.DataFrame({"shop": [f"s{k}" for k in shop], "product": [f"p{k}" for k in product]})
train, test = slice(0, n // 2), slice(n // 2, n)

onehot = make_pipeline(OneHotEncoder(sparse_output=True), LogisticRegression(C=100, max_iter=500))
models = {"one-hot + LogisticRegression(C=100)": onehot, "WideClassifier()": WideClassifier()}

# %%
fig, ax = plt.subplots(figsize=(6, 5), layout="constrained")
ax.plot([0, 1], [0, 1], color="black", linewidth=1)
for name, model in models.items():
    p = model.fit(X[train], y[train]).predict_proba(X[test])[:, 1]
    share, mean = calibration_curve(y[test], p, n_bins=10, strategy="quantile")
    ax.plot(mean, share, "o-", label=f"{name}: log-loss {log_loss(y[test], p):.3f}")
ax.set(xlabel="predicted probability", ylabel="observed share", title="1,500 shops, four rows each, new rows")
ax.legend()
