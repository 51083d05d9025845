"""
Why this prediction
===================

``explain`` gives what every term adds to a prediction: the sum of a row is the linear predictor, exactly. No sampling
and no background data are needed.
"""

import matplotlib.pyplot as plt
import numpy as np

from tabsym import WideRegressor
from tabsym.datasets import make_retail

sales = make_retail(4_000)
X = sales.drop(columns="sales")
model = WideRegressor(loss="gamma", interactions=None).fit(X, sales["sales"])

row = X.iloc[[11]]
made = model.explain(row).iloc[0]
assert np.isclose(np.exp(made.sum()), model.predict(row)[0])

# %%
# A waterfall from the intercept to the prediction, the largest contributions first.

terms = made.drop("(intercept)")
terms = terms[terms.abs().sort_values(ascending=False).index]
ends = made["(intercept)"] + terms.cumsum()
starts = ends - terms

fig, ax = plt.subplots(figsize=(8, 4.5), layout="constrained")
ax.barh(range(len(terms)), terms, left=starts, color=np.where(terms > 0, "tab:green", "tab:red"))
ax.set_yticks(range(len(terms)), [f"{name} = {row[name].iloc[0]}" if name in row else name for name in terms.index])
ax.invert_yaxis()
ax.use_sticky_edges = False
ax.margins(x=0.06)
ax.axvline(made["(intercept)"], color="grey", linewidth=0.8, linestyle="--", label="intercept")
ax.axvline(
    made.sum(), color="black", linewidth=0.8, label=f"prediction: exp({made.sum():.2f}) = {np.exp(made.sum()):.1f}"
)
ax.set(xlabel="logarithm of sales", title="One row, term by term")
ax.legend(loc="best")
