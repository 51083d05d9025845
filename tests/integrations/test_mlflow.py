"""MLflow's own way to log a model of scikit-learn, at its defaults, with estimators of tabsym."""

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline

import tabsym
from tabsym import (
    CrossFit,
    MODLEncoder,
    OneHotEncoder,
    WideBoostRegressor,
    WideClassifier,
    WideEncoder,
    WideRegressor,
    WideSGDClassifier,
    WideSGDRegressor,
)

mlflow = pytest.importorskip("mlflow")
GUIDE = Path(__file__).parents[2] / "docs" / "serving.md"
ESTIMATORS = [
    WideRegressor(),
    WideClassifier(),
    WideSGDClassifier(),
    WideSGDRegressor(),
    WideBoostRegressor(),
    OneHotEncoder(),
    CrossFit(WideEncoder()),
    make_pipeline(MODLEncoder(output="mean"), Ridge()),
]


@pytest.fixture(autouse=True)
def tracking(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")  # mlflow-skinny brings no database
    mlflow.set_tracking_uri(tmp_path.joinpath("runs").as_uri())


@pytest.fixture
def no_requirements(monkeypatch):
    """A process of its own looks for the libraries that a model needs, for half a minute."""
    monkeypatch.setattr("mlflow.models.infer_pip_requirements", lambda *_, **__: ["tabsym"])


def table(n=150):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"colour": rng.choice(["red", "blue", "green"], n), "price": rng.normal(size=n)})
    return X, X["price"] + (X["colour"] == "red")


def said(model, X):
    return model.predict(X) if hasattr(model, "predict") else model.transform(X).to_numpy()


@pytest.mark.slow
@pytest.mark.usefixtures("no_requirements")
@pytest.mark.parametrize("model", ESTIMATORS, ids=lambda one: type(one).__name__)
def test_models_and_encoders_come_back(model):
    X, y = table()
    model.fit(X, np.where(y > 0, "yes", "no") if "Classifier" in type(model).__name__ else y)
    with mlflow.start_run():
        info = mlflow.sklearn.log_model(model, name="model", skops_trusted_types=tabsym.trusted_types())
    back = mlflow.sklearn.load_model(info.model_uri)
    assert type(back) is type(model) and (said(back, X) == said(model, X)).all()
    if hasattr(model, "predict"):
        assert (mlflow.pyfunc.load_model(info.model_uri).predict(X) == model.predict(X)).all()


@pytest.mark.usefixtures("no_requirements")
def test_mlflow_asks_for_the_types():
    X, y = table()
    with mlflow.start_run(), pytest.raises(mlflow.MlflowException, match="skops_trusted_types"):
        mlflow.sklearn.log_model(WideRegressor().fit(X, y), name="model")


@pytest.mark.usefixtures("no_requirements")
@pytest.mark.slow
def test_the_block_of_the_guide():
    X, y = table()
    model = WideRegressor().fit(X, y)
    (block,) = (one for one in re.findall(r"```py\n(.*?)```", GUIDE.read_text(), flags=re.S) if "mlflow" in one)
    names = {"model": model, "X": X}
    exec(compile(block, "serving.md", "exec"), names)
    assert (names["back"].predict(X) == model.predict(X)).all()
