"""Types of other libraries that files may name, by kind of node: those that models of tabsym hold, and no others.

`tests/test_export_types.py` collects what models and winners hold and compares. Leaving a name out costs a user a
``trusted=``; taking one in that does harm when it is built costs much more.
"""

from __future__ import annotations


def _of(module: str, names: str) -> set[str]:
    return {f"{module}.{name}" for name in names.split()}


_OBJECTS = (
    _of("sklearn.compose._column_transformer", "ColumnTransformer")
    | _of("sklearn.dummy", "DummyClassifier DummyRegressor")
    | _of(
        "sklearn.ensemble._hist_gradient_boosting.gradient_boosting",
        "HistGradientBoostingClassifier HistGradientBoostingRegressor",
    )
    | _of("sklearn.ensemble._hist_gradient_boosting.binning", "_BinMapper")
    | _of("sklearn.ensemble._hist_gradient_boosting.predictor", "TreePredictor")
    | _of("sklearn._loss.link", "IdentityLink Interval LogLink LogitLink MultinomialLogit")
    | _of("sklearn._loss.loss", "HalfBinomialLoss HalfMultinomialLoss HalfPoissonLoss HalfSquaredError")
    | _of("sklearn.impute._base", "SimpleImputer")
    | _of("sklearn.linear_model._glm.glm", "PoissonRegressor")
    | _of("sklearn.linear_model._logistic", "LogisticRegression")
    | _of("sklearn.linear_model._ridge", "Ridge")
    | _of("sklearn.pipeline", "Pipeline")
    | _of("sklearn.preprocessing._data", "MaxAbsScaler StandardScaler")
    | _of("sklearn.preprocessing._encoders", "OneHotEncoder OrdinalEncoder")
    | _of("sklearn.preprocessing._function_transformer", "FunctionTransformer")
    | _of("sklearn.preprocessing._label", "LabelEncoder")
    | _of("lightgbm.basic", "Booster")
    | _of("lightgbm.sklearn", "LGBMClassifier LGBMRegressor")
    | _of("xgboost.core", "Booster")
    | _of("xgboost.sklearn", "XGBClassifier XGBRegressor")
    | _of("catboost.core", "CatBoostClassifier CatBoostRegressor")
)
PARTS = frozenset(
    name for name in _OBJECTS if name.startswith("sklearn._loss") or name.endswith((".Booster", ".TreePredictor"))
)
"""Those that are no models by themselves."""
_LOSSES = _of("sklearn._loss._loss", "CyHalfBinomialLoss CyHalfMultinomialLoss CyHalfPoissonLoss CyHalfSquaredError")
_NUMBERS = _of(
    "numpy", "bool float32 float64 int8 int16 int32 int64 uint8 uint16 uint32 uint64 str_ datetime64 timedelta64"
)
_SYMBOLS = _of("datetime", "date datetime time timedelta") | _of("decimal", "Decimal")  # of columns of objects

LISTS: dict[str, frozenset[str]] = {
    "JsonNode": frozenset({"builtins.str"}),
    "ListNode": frozenset({"builtins.list"}),
    "TupleNode": frozenset({"builtins.tuple"}),
    "SetNode": frozenset({"builtins.set"}),
    "DictNode": frozenset({"builtins.dict", "collections.OrderedDict"}),
    "DefaultDictNode": frozenset({"collections.defaultdict"}),
    "BytesNode": frozenset({"builtins.bytes"}),
    "BytearrayNode": frozenset({"builtins.bytearray"}),
    "SliceNode": frozenset({"builtins.slice"}),
    "NdArrayNode": frozenset({"numpy.ndarray"} | _NUMBERS),
    "DTypeNode": frozenset({"numpy.dtype"}),
    "SparseMatrixNode": frozenset(_of("scipy.sparse._csr", "csr_array")),
    "RandomStateNode": frozenset({"numpy.random.mtrand.RandomState"}),
    "RandomGeneratorNode": frozenset({"numpy.random._generator.Generator"}),
    "FunctionNode": frozenset({"sklearn.utils.validation.check_array"}),
    "TypeNode": frozenset(
        _of("builtins", "int float str bool object NoneType") | {"collections.OrderedDict", "numpy.asarray"} | _NUMBERS
    ),
    "PartialNode": frozenset({"functools.partial"}),
    "ConstructorFromReduceNode": frozenset(_SYMBOLS),
    "LossNode": frozenset(_LOSSES),
    "ObjectNode": frozenset(_OBJECTS),
}
"""Kind of node -> full names."""
