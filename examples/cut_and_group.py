"""What a column says about a target: MODL's intervals and groups, read and used."""

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

    # the same parts as log odds under a linear model: cross-fitted, so that they do not leak
    model = make_pipeline(MODLEncoder(output="logodds"), LogisticRegression()).fit(X, y)
    print("log odds + logistic regression:", round(model.score(X, y), 3))

    # a wide model that cuts numbers itself, and takes the crosses that rows held out speak for
    wide = WideClassifier(numeric="modl", interactions="auto", random_state=0).fit(X, y)
    print(wide.interactions_.round(4).to_string())
