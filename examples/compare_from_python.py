"""Compare treatments of categories from Python, a pipeline of one's own among them, and use the winner."""

import tempfile

from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import TargetEncoder

from tabsym import compare
from tabsym.datasets import make_retail

if __name__ == "__main__":
    sales = make_retail(2_000)
    categories = list(sales.select_dtypes(exclude="number"))
    encode = make_column_transformer(
        (TargetEncoder(target_type="continuous", random_state=0), categories), remainder="passthrough"
    )
    mine = make_pipeline(encode, HistGradientBoostingRegressor(random_state=0))
    with tempfile.TemporaryDirectory() as folder:
        result = compare(
            sales, "sales", contenders={"mine": mine, "wide": None, "onehot-linear": None}, folds=3, out=f"{folder}/out"
        )
    print(result.ranking[["label", "score", "difference", "low", "high", "verdict", "fit_seconds"]])
    print("\n".join(result.summary))
    print(result.best.predict(sales.head(3)))
