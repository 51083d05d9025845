"""
Categories that training has never seen
=======================================

Most encoders give an unknown category the mean of all rows. ``TIWSEncoder`` looks at the other columns of its rows: a
new model of car with one body, one engine and one price class is like the known models with these.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from tabsym import TIWSEncoder

rng = np.random.default_rng(0)
n_models = 120
body = rng.choice(["city", "estate", "van", "sports"], n_models)
engine = rng.choice(["petrol", "diesel", "electric"], n_models)
effect = pd.Series(body).map({"city": -6, "estate": 0, "van": 3, "sports": 9}) + pd.Series(engine).map(
    {"petrol": -1, "diesel": 0, "electric": 4}
)
effect = effect.to_numpy() + rng.normal(0, 1, n_models)
model = rng.choice(n_models, 6_000)
X = pd.DataFrame({"model": [f"model {k}" for k in model], "body": body[model], "engine": engine[model]})
y = 20 + effect[model] + rng.normal(0, 2, 6_000)

new = model >= 90  # thirty models are not in the training rows
encoder = TIWSEncoder(cols=["model"]).fit(X[~new], y[~new])
estimate = pd.Series(np.asarray(encoder.transform(X[new])["model"])).groupby(model[new]).mean()

# %%
fig, ax = plt.subplots(figsize=(6, 5), layout="constrained")
ax.plot(20 + effect[estimate.index], estimate, "o", label="TIWSEncoder")
ax.axhline(y[~new].mean(), color="grey", linestyle="--", label="mean of all rows")
low, high = 20 + effect.min(), 20 + effect.max()
ax.plot([low, high], [low, high], color="black", linewidth=1, label="equal")
ax.set(xlabel="true mean of the unknown model", ylabel="encoded as", title="Thirty unknown models of car")
ax.legend()

# %%
# The known models that the first unknown one resembles:

print(encoder.donors(X[new].head(1), "model").round(3).to_string(index=False))
