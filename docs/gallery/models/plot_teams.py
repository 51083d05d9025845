"""
A formula: the strength of teams
================================

In a formula a coefficient has a name, so that two columns can read the same one. ``w[home] - w[away]`` is the model of
Bradley and Terry: one strength for each team, the probability of a win by the difference of two, and an advantage of
playing at home.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from tabsym import WideClassifier

rng = np.random.default_rng(3)
teams = [f"team {name}" for name in "ABCDEFGHIJKL"]
strength = pd.Series(np.sort(rng.normal(0, 0.8, len(teams))), index=teams)
home, away = np.array([rng.choice(teams, 2, replace=False) for _ in range(600)]).T
logit = 0.4 + strength[home].to_numpy() - strength[away].to_numpy()
wins = rng.random(600) < 1 / (1 + np.exp(-logit))
games = pd.DataFrame({"home": home, "away": away, "win": wins})

model = WideClassifier("win ~ w[home] - w[away] + h[1]").fit(games)
estimate = model.coefs_["w"].reindex(teams)
print("home advantage:", model.coefs_["h"]["value"].round(2).to_list(), "(truth: 0.4)")

# %%
fig, ax = plt.subplots(figsize=(7, 4.5), layout="constrained")
ax.errorbar(estimate["value"], teams, xerr=1.96 * estimate["sd"], fmt="o", capsize=2, label="estimate, 95 % interval")
ax.plot(strength - strength.mean(), teams, "x", color="tab:orange", label="truth")
ax.axvline(0, color="grey", linewidth=0.8)
ax.set(xlabel="strength (log odds)", title="Strengths from 600 games")
ax.legend()
