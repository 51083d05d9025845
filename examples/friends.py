"""Encoders and wide models inside scikit-learn's and skrub's tools: a stack, a search and a table vectorizer."""

from sklearn.compose import make_column_transformer
from sklearn.ensemble import StackingRegressor
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from skrub import TableVectorizer

from tabsym import OneHotEncoder, TIWSEncoder, WideEncoder, WideRegressor
from tabsym.datasets import make_retail

sales = make_retail(1_000)
X, y = sales.drop(columns="sales"), sales["sales"]

# one column each to the encoder that suits it: few categories as 0/1 columns, many as one number
encode = make_column_transformer((OneHotEncoder(), ["size"]), (WideEncoder(), ["supplier", "colour"]), remainder="drop")
print("column transformer, R2:", cross_val_score(make_pipeline(encode, Ridge()), X, y, cv=3).round(3))

# a wide model takes the table as it is, beside any other member of a stack
members = [("wide", WideRegressor()), ("columns", make_pipeline(encode, Ridge()))]
print("stack, R2:", cross_val_score(StackingRegressor(members, Ridge(), cv=3), X, y, cv=3).round(3))

# options of a step are searched by name
search = GridSearchCV(make_pipeline(OneHotEncoder(), Ridge()), {"onehotencoder__min_frequency": [None, 50]}, cv=3)
print("search, best:", search.fit(X.select_dtypes(exclude="number"), y).best_params_)

# skrub finds the columns of many categories, and hands them to the encoder; in training it is out of fold
vectorize = TableVectorizer(cardinality_threshold=10, high_cardinality=TIWSEncoder())
print("skrub, R2:", cross_val_score(make_pipeline(vectorize, Ridge()), X, y, cv=3).round(3))
