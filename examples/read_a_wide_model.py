"""Read a wide model: the coefficient of each category, and on how many rows it rests."""

from tabsym import WideRegressor
from tabsym.datasets import make_retail

sales, truth = make_retail(20_000, return_truth=True)
X, y = sales.drop(columns="sales"), sales["sales"]

model = WideRegressor().fit(X, y)

colours = model.coefs_["colour"].sort_values("value", ascending=False)
print(model.loss_, "loss: behind its log link, a coefficient of 0.1 is 10.5 % more sales")
print(colours.round(2))

# The process that made the table is known: do the model's colours come in its order?
common = colours[colours["rows"] >= 100].drop(index=[None], errors="ignore")
print("rank correlation with the truth:", common["value"].corr(truth.colour[common.index], method="spearman").round(2))
