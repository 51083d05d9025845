"""Drop an encoder into a scikit-learn pipeline: any frame in, the same kind out."""

from sklearn.linear_model import Ridge
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline

from tabsym import OneHotEncoder
from tabsym.datasets import make_retail

sales = make_retail(3_000)
X, y = sales.drop(columns="sales"), sales["sales"]

# Text and category columns are encoded, numbers pass through; categories that a fold
# has not seen in training become rows of zeros.
pipeline = make_pipeline(OneHotEncoder(sparse_output=True), Ridge())
print("R2 by fold:", cross_val_score(pipeline, X, y, cv=3).round(3))

readable = OneHotEncoder(cols=["size"], use_cat_names=True).fit(X)
print(readable.transform(X.head(3)).T)
