"""
Rows that arrive one after another
==================================

``WideSGDClassifier.partial_fit`` learns from one batch after another, and takes categories that it has not seen before.
Each batch is predicted before it is learned from: the loss of new rows falls as they come. After a change of the
process the model follows, as its learning rate is constant.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.metrics import log_loss

from tabsym import WideSGDClassifier

rng = np.random.default_rng(0)
effect = rng.normal(0, 1.5, 200)
losses, best = [], []
model = WideSGDClassifier(optimizer="sgd", learning_rate=0.1, random_state=0)
for batch in range(60):
    if batch == 30:
        effect = rng.normal(0, 1.5, 200)  # everything is different from here on
    shop = rng.integers(0, min(200, 50 + 10 * batch), 500)  # new shops open
    p = 1 / (1 + np.exp(-effect[shop]))
    X, y = pd.DataFrame({"shop": [f"shop {k}" for k in shop]}), (rng.random(500) < p).astype(int)
    if batch:
        losses.append(log_loss(y, model.predict_proba(X), labels=[0, 1]))
        best.append(log_loss(y, p))
    model.partial_fit(X, y, classes=[0, 1])

# %%
fig, ax = plt.subplots(figsize=(8, 4.2), layout="constrained")
ax.plot(range(1, 60), losses, label="online model, on the next batch")
ax.plot(range(1, 60), best, color="black", linewidth=1, label="true probabilities")
ax.axvline(30, color="grey", linestyle="--", linewidth=0.8)
ax.annotate("all effects change", (30, ax.get_ylim()[1]), xytext=(4, -12), textcoords="offset points")
ax.set(xlabel="batches of 500 rows", ylabel="log-loss", title="A stream with a break")
ax.legend()
