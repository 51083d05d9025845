"""
A scorecard
===========

``tabsym.export.scorecard`` turns a model of two classes into points: whole numbers that add up to a score, 600 where
the odds are 50 to 1, and 20 more where they double.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from tabsym import WideClassifier
from tabsym.export import scorecard

rng = np.random.default_rng(0)
n = 8_000
X = pd.DataFrame(
    {
        "home": rng.choice(["own", "rent", "parents"], n, p=[0.4, 0.5, 0.1]),
        "job": rng.choice(["employed", "self-employed", "student", "none"], n, p=[0.6, 0.2, 0.12, 0.08]),
        "income": rng.lognormal(10.3, 0.5, n).round(-2),
    }
)
logit = 2.2 + X["home"].map({"own": 0.8, "rent": 0.0, "parents": -0.3})
logit += X["job"].map({"employed": 0.6, "self-employed": 0.0, "student": -0.4, "none": -1.4})
logit += 1.2 * (np.log(X["income"]) - 10.3)
pays = rng.random(n) < 1 / (1 + np.exp(-logit))

model = WideClassifier(numeric="modl", interactions=None, count_effect=False).fit(X, pays)
card = scorecard(model, points=600, odds=50, pdo=20, good=True, decimals=0)
print(card[["term", "category", "points"]].to_string(index=False))

# %%
factor = 20 / np.log(2)
score = 600 + factor * (model.decision_function(X) - np.log(50))
fig, ax = plt.subplots(figsize=(8, 4.2), layout="constrained")
bins = np.arange(np.floor(score.min()), np.ceil(score.max()) + 5, 5)
ax.hist(score[pays], bins=bins, density=True, alpha=0.5, label="pays")
ax.hist(score[~pays], bins=bins, density=True, alpha=0.5, label="does not")
ax.set(xlabel="score", ylabel="density", title="Scores of 8,000 applicants")
ax.legend()
