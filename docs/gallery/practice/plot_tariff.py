"""
A tariff: relativities and exposure
===================================

Claims are counts over an exposure: ``loss="poisson", exposure_column="years"``. ``coef_table`` has the relativities to
the category with most rows, with their limits; the product of a row's relativities is its rate.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from tabsym import WideRegressor

rng = np.random.default_rng(0)
n = 20_000
area = rng.choice(list("ABCDEF"), n, p=[0.35, 0.25, 0.18, 0.12, 0.07, 0.03])
age = rng.integers(18, 85, n).astype(float)
years = rng.uniform(0.1, 1.0, n)
true_area = pd.Series({"A": 1.0, "B": 1.1, "C": 1.3, "D": 1.5, "E": 1.9, "F": 2.4})
rate = 0.12 * true_area[area].to_numpy() * (1 + 1.6 * np.exp(-(age - 18) / 8))
policies = pd.DataFrame({"area": area, "age": age, "years": years, "claims": rng.poisson(rate * years)})

model = WideRegressor(loss="poisson", exposure_column="years", interactions=None, count_effect=False)
model.fit(policies, "claims")
table = model.coef_table(scale="response", base="largest")
areas = table[table["term"] == "area"].set_index("category").loc[list("ABCDEF")]

# %%
fig, axes = plt.subplots(1, 2, figsize=(11, 4.3), layout="constrained")
error = [areas["value"] - areas["lower"], areas["upper"] - areas["value"]]
axes[0].errorbar(areas.index, areas["value"], yerr=error, fmt="o", capsize=3, label="relativity, 95 % interval")
axes[0].plot(true_area.index, true_area, "x", color="tab:orange", label="truth")
axes[0].set(xlabel="area", ylabel="relativity to area A", title="Relativities")
axes[0].legend()

# deciles of the predicted rate: what was predicted, and what was observed
predicted = model.predict(policies.drop(columns="claims")) / years
sums = pd.DataFrame({"predicted": predicted * years, "observed": policies["claims"], "years": years})
by = sums.groupby(pd.qcut(predicted, 10, labels=False)).sum()
axes[1].plot(by.index + 1, by["predicted"] / by["years"], "o-", label="predicted")
axes[1].plot(by.index + 1, by["observed"] / by["years"], "s--", label="observed")
axes[1].set(xlabel="decile of the predicted rate", ylabel="claims per year", title="Lift, on the training rows")
axes[1].legend()
