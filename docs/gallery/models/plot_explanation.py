"""
Why this prediction
===================

``explain`` gives what every term adds to a prediction: the sum of a row is the linear predictor, exactly. No sampling
and no background data are needed.
"""

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
# The waterfall goes from the intercept to the prediction, the largest contributions first. With ``scale="response"``
# the axis has sales in place of their logarithm.

ax = model.plot_explanation(X, row=11, scale="response")
ax.figure.set_size_inches(8, 4.5)
