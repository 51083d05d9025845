"""
A mixed model: pupils in schools
================================

Random intercepts and slopes by school, as in lme4's ``score ~ hours + (hours || school)``. The variances are estimated
by REML, and the schools' lines are shrunk to the common one: a school with four pupils most. Intercepts are those at
the mean of the number.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from tabsym import WideRegressor

rng = np.random.default_rng(0)
n_schools = 50
pupils = rng.integers(4, 60, n_schools)
intercept, slope = rng.normal(0, 3, n_schools), rng.normal(0, 0.8, n_schools)
school = np.repeat(np.arange(n_schools), pupils)
hours = rng.uniform(-5, 5, len(school))  # about their mean
score = 50 + intercept[school] + (2 + slope[school]) * hours + rng.normal(0, 5, len(school))
table = pd.DataFrame({"school": [f"s{k:02d}" for k in school], "hours": hours, "score": score})

model = WideRegressor("score ~ w[school] + v[school] * hours + s[1] * hours + c[1]", loss="squared_error").fit(table)
print("standard deviations:", model.variances_["sd"].round(2).to_dict(), "(truth: 3 and 0.8)")
print("residual:", round(model.dispersion_**0.5, 2), "(truth: 5)")

# %%
# The caterpillar plot of the slopes, and the true ones.

slopes = model.coefs_["v"].sort_values("value")
true = slope[[int(name[1:]) for name in slopes.index]] - slope.mean()
fig, ax = plt.subplots(figsize=(9, 4.5), layout="constrained")
ax.errorbar(range(n_schools), slopes["value"], yerr=1.96 * slopes["sd"], fmt="o", markersize=4, label="BLUP, 95 %")
ax.plot(range(n_schools), true, "x", color="tab:orange", label="truth")
ax.axhline(0, color="grey", linewidth=0.8)
ax.set(xlabel="schools, in order", ylabel="slope, from the common one", title="What an hour is worth, by school")
ax.set_xticks([])
ax.legend(loc="upper left")
