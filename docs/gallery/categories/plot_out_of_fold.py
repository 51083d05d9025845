"""
Target encoding that does not leak
==================================

A target encoder that encodes a training row with the row's own target tells the model the answer. A column of
identifiers, which say nothing, then looks like the best column of all. Encoders of tabsym encode training rows out of
fold; ``CrossFit`` does the same for any other encoder.
"""

import numpy as np
import pandas as pd
from category_encoders import TargetEncoder
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from tabsym import CrossFit, WideEncoder

rng = np.random.default_rng(0)
n = 4_000
X = pd.DataFrame({"id": rng.choice([f"id {k}" for k in range(2_000)], n), "kind": rng.choice(list("abc"), n)})
y = (rng.random(n) < X["kind"].map({"a": 0.3, "b": 0.5, "c": 0.7})).astype(int)  # only `kind` matters
train, test = slice(0, n // 2), slice(n // 2, n)

encoders = {
    "category_encoders' TargetEncoder": TargetEncoder(cols=["id", "kind"], smoothing=1, min_samples_leaf=1),
    "the same inside CrossFit": CrossFit(TargetEncoder(cols=["id", "kind"], smoothing=1, min_samples_leaf=1)),
    "WideEncoder": WideEncoder(),
}
scores = {}
for name, encoder in encoders.items():
    seen = encoder.fit_transform(X[train], y[train])  # what a pipeline hands on in training
    model = LogisticRegression().fit(seen, y[train])
    new = encoder.transform(X[test])
    scores[name] = [roc_auc_score(y[train], model.predict_proba(seen)[:, 1])]
    scores[name] += [roc_auc_score(y[test], model.predict_proba(new)[:, 1])]

# %%
# The best possible AUC on new rows is that of the true rates.

best = roc_auc_score(y[test], X["kind"][test].map({"a": 0.3, "b": 0.5, "c": 0.7}))
table = pd.DataFrame(scores, index=["training rows, as the model saw them", "new rows"]).T
ax = table.plot.barh(figsize=(9, 3.6), color=["lightgrey", "tab:blue"])
ax.axvline(best, color="black", linewidth=1, label="best possible on new rows")
ax.set(xlim=(0.5, 1), xlabel="AUC", title="Two columns, of which one is an identifier")
ax.invert_yaxis()
ax.legend(loc="lower right")
ax.figure.set_layout_engine("constrained")
