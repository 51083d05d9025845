"""What a column says about a target: MODL's intervals and groups of categories, read and used."""

from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from tabsym import MODLEncoder, WideClassifier
from tabsym.datasets import make_retail

if __name__ == "__main__":
    table = make_retail(6_000)
    X, y = table.drop(columns="sales"), (table["sales"] > table["sales"].median()).astype(int)

    encoder = MODLEncoder().fit(X, y)
    print("Level of each column on its own:", {name: round(level, 4) for name, level in encoder.levels_.items()})
    print(encoder.parts("colour").round(3).to_string())
    print(encoder.describe().split("\n\n")[0])

    # the same intervals and groups as log odds under a linear model: cross-fitted, so that they do not leak
    model = make_pipeline(MODLEncoder(output="logodds"), LogisticRegression()).fit(X, y)
    print("log odds + logistic regression:", round(model.score(X, y), 3))

    # a wide model that bins numbers in the same way, with the interactions that lower the loss of rows held out
    wide = WideClassifier(numeric="modl").fit(X, y)
    print(wide.interactions_.round(4).to_string())
