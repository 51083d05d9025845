"""Wide models and stacks as model classes of AutoGluon and TabArena (needs autogluon.core; run with 1.6.3).

TabArena stores models by pickle, so that the classes are imported from a file, as here, not defined in the script that
runs the experiments. `python examples/tabarena/tabarena_wide.py` fits both on generated sales. In TabArena:

    from tabarena.utils.config_utils import ConfigGenerator
    from tabarena_wide import SEARCH_SPACE, TabsymWide

    experiments = ConfigGenerator(
        model_cls=TabsymWide, manual_configs=[{}], search_space=SEARCH_SPACE
    ).generate_all_bag_experiments(num_random_configs=20)
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from autogluon.common.space import Categorical
from autogluon.core.constants import REGRESSION
from autogluon.core.metrics import mean_absolute_error
from autogluon.core.models import AbstractModel

SEARCH_SPACE = {
    "numeric": Categorical("smooth", "linear"),
    "interactions": Categorical("auto", None),
    "count_effect": Categorical(True, False),
}
"""What is worth a search; variances of terms, interactions and bins are estimated in every fit."""


class TabsymWide(AbstractModel):
    """`WideClassifier` or `WideRegressor`; hyperparameters are their options."""

    ag_key = "TABSYM_WIDE"
    ag_name = "TabsymWide"
    names = ("WideClassifier", "WideRegressor")

    def _fit(
        self,
        X: pd.DataFrame,
        y: pd.Series,
        sample_weight: pd.Series | None = None,
        num_cpus: int | None = 1,
        **kwargs: Any,
    ) -> None:
        import tabsym

        kind = getattr(tabsym, self.names[self.problem_type == REGRESSION])
        options = {"n_jobs": num_cpus} | self._get_model_params()
        if "scoring" in kind().get_params() and self.eval_metric is mean_absolute_error:
            options = {"scoring": "neg_mean_absolute_error"} | options
        X = self.preprocess(X, y=y, is_train=True)
        self.model = kind(**options).fit(X, np.asarray(y), sample_weight=sample_weight)

    @classmethod
    def supported_problem_types(cls) -> list[str]:
        return ["binary", "multiclass", "regression"]

    def _get_default_auxiliary_params(self) -> dict[str, Any]:
        """Text is for AutoGluon's own features; categories and missing values come as they are."""
        types = {"valid_raw_types": ["bool", "int", "float", "category"]}
        return super()._get_default_auxiliary_params() | types

    def _more_tags(self) -> dict[str, Any]:
        return {"can_refit_full": True}  # a fit needs no rows that are held out


class TabsymStack(TabsymWide):
    """`WideBoostClassifier` or `WideBoostRegressor`: a wide model under LightGBM."""

    ag_key = "TABSYM_STACK"
    ag_name = "TabsymStack"
    names = ("WideBoostClassifier", "WideBoostRegressor")


if __name__ == "__main__":
    import tempfile

    from tabsym.datasets import make_retail

    table = make_retail(3000, random_state=0)
    X = table.drop(columns="sales")
    text = X.select_dtypes(["object", "string"]).columns
    X = X.astype(dict.fromkeys(text, "category")).select_dtypes(["number", "category", "bool"])
    for kind in (TabsymWide, TabsymStack):
        with tempfile.TemporaryDirectory() as folder:
            model = kind(path=folder, problem_type="regression", eval_metric="root_mean_squared_error")
            model.fit(X=X[:2000], y=table["sales"][:2000], num_cpus=1, num_gpus=0)
            error = model.predict(X[2000:]) - table["sales"][2000:]
            print(f"{model.name}: RMSE {np.sqrt(np.mean(error**2)):.1f}, sd of sales {table['sales'][2000:].std():.1f}")
