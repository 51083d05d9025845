"""Types that files may name: tabsym's own by registered names, and those of other libraries that its models hold.

Registered names stay when modules move, and nothing else of tabsym is built. A class that becomes part of a fitted
estimator gets a line here; `tests/export/test_types.py` says which are missing, and collects what models and winners
hold of other libraries. Leaving one of those out costs a user a ``trusted=``; taking one in that does harm when it is
built costs much more.
"""

from __future__ import annotations

from functools import cache

CLASSES: dict[str, str] = {
    "Categories": "tabsym.categories.categories:Categories",
    "Cross": "tabsym.categories.categories:Cross",
    "Winner": "tabsym.compare.comparison:Winner",
    "HistClassifier": "tabsym.compare.estimators:HistClassifier",
    "CompareFeatures": "tabsym.compare.table.features:Features",
    "FilledEncoder": "tabsym.compare.estimators:FilledEncoder",
    "ComparePoints": "tabsym.compare.estimators:_Points",
    "Jittered": "tabsym.compare.estimators:Jittered",
    "NumberFormat": "tabsym.compare.table.number_format:NumberFormat",
    "CompareColumns": "tabsym.compare.table.prepare:RoleColumns",
    "PlainPolynomialWrapper": "tabsym.compare.target_encoded:PlainPolynomialWrapper",
    "PlainTargetEncoder": "tabsym.compare.target_encoded:PlainTargetEncoder",
    "Retyping": "tabsym.compare.table.retyping:Retyping",
    "CrossFit": "tabsym.encoders.crossfit:CrossFit",
    "StoredEncoder": "tabsym.encoders.crossfit:StoredEncoder",
    "DateParts": "tabsym.encoders.dates:DateParts",
    "MODLColumn": "tabsym.encoders.modl_column:MODLColumn",
    "MODLEncoder": "tabsym.encoders.modl:MODLEncoder",
    "NativeCategories": "tabsym.encoders.native:NativeCategories",
    "NativePipeline": "tabsym.encoders.native:NativePipeline",
    "OneHotColumn": "tabsym.encoders.onehot_column:OneHotColumn",
    "OneHotEncoder": "tabsym.encoders.onehot:OneHotEncoder",
    "OneHotOptions": "tabsym.encoders.onehot_column:OneHotOptions",
    "InfrequentRule": "tabsym.encoders.onehot_column:InfrequentRule",
    "TIWSEncoder": "tabsym.encoders.tiws:TIWSEncoder",
    "TIWSColumn": "tabsym.encoders.tiws_column:TIWSColumn",
    "WideColumn": "tabsym.encoders.wide:WideColumn",
    "WideEncoder": "tabsym.encoders.wide:WideEncoder",
    "OffsetColumn": "tabsym.models.data:OffsetColumn",
    "Similar": "tabsym.models.base:Similar",
    "WideClassifier": "tabsym.models.wide:WideClassifier",
    "WideRegressor": "tabsym.models.wide:WideRegressor",
    "WideSGDClassifier": "tabsym.models.wide_sgd:WideSGDClassifier",
    "WideSGDRegressor": "tabsym.models.wide_sgd:WideSGDRegressor",
    "Huber": "tabsym.losses:Huber",
    "Quantile": "tabsym.losses:Quantile",
    "Tweedie": "tabsym.losses:Tweedie",
    "AugmentedModel": "tabsym.jitter.augmented:AugmentedModel",
    "Calibration": "tabsym.jitter.calibration:Calibration",
    "JitterPredictor": "tabsym.jitter.predictor:JitterPredictor",
    "JitterTree": "tabsym.jitter.tree:Tree",
    "TreeColumns": "tabsym.jitter.tree:TreeColumns",
    "JitterTreeClassifier": "tabsym.jitter.tree_estimators:JitterTreeClassifier",
    "JitterTreeRegressor": "tabsym.jitter.tree_estimators:JitterTreeRegressor",
    "MODLGroups": "tabsym.modl.columns:Groups",
    "MODLIntervals": "tabsym.modl.columns:Intervals",
    "MODLTarget": "tabsym.modl.columns:PartTargets",
    "MODLPartition": "tabsym.modl.partition:Partition",
    "NaiveBayes": "tabsym.naive_bayes:NaiveBayes",
    "SelectiveNaiveBayesClassifier": "tabsym.naive_bayes:SelectiveNaiveBayesClassifier",
    "WideBoostClassifier": "tabsym.stacking.boost:WideBoostClassifier",
    "WideBoostRegressor": "tabsym.stacking.boost:WideBoostRegressor",
    "Layer": "tabsym.stacking.layer:Layer",
    "PairCounts": "tabsym.categories.contingency:PairCounts",
    "Measure": "tabsym.frame.storage:Measure",
    "StoredType": "tabsym.frame.dtypes:StoredType",
    "FittedColumn": "tabsym.tiws.column:FittedColumn",
    "TIWSMethod": "tabsym.tiws.column:Method",
    "TableCounts": "tabsym.tiws.counts:TableCounts",
    "DonorRule": "tabsym.tiws.unknown:DonorRule",
    "SimilarityKernel": "tabsym.tiws.similarity:SimilarityKernel",
    "Covariance": "tabsym.tiws.unknown:Covariance",
    "Components": "tabsym.tiws.unknown:Components",
    "Sums": "tabsym.tiws.unknown:Sums",
    "Observed": "tabsym.tiws.column:Observed",
    "TIWSBins": "tabsym.tiws.counts:NumberWords",
    "TIWSSymbols": "tabsym.tiws.counts:CategoryWords",
    "Certainty": "tabsym.solvers.newton.certainty:Certainty",
    "TermCovariance": "tabsym.solvers.newton.certainty:TermCovariance",
    "AutoInteractions": "tabsym.interactions.search:AutoInteractions",
    "WideChosen": "tabsym.interactions.search:Chosen",
    "WideWithin": "tabsym.design.plan:Within",
    "WideBlock": "tabsym.design.model_spec:Block",
    "WideFactor": "tabsym.design.model_spec:Factor",
    "ModelSpec": "tabsym.design.model_spec:ModelSpec",
    "WideNumeric": "tabsym.design.model_spec:Numeric",
    "WideTerm": "tabsym.design.model_spec:Term",
    "WideLoss": "tabsym.losses.loss:Loss",
    "WideModel": "tabsym.models.model:WideModel",
    "WideMoments": "tabsym.design.units:Moments",
    "Adagrad": "tabsym.solvers.sgd.options:Adagrad",
    "Adam": "tabsym.solvers.sgd.options:Adam",
    "RMSprop": "tabsym.solvers.sgd.options:RMSprop",
    "SGD": "tabsym.solvers.sgd.options:SGD",
    "StateColumns": "tabsym.solvers.sgd.options:StateColumns",
    "WideBins": "tabsym.design.sources:Bins",
    "Crossing": "tabsym.design.sources:Crossing",
    "WideFlag": "tabsym.design.sources:Flag",
    "CountEffect": "tabsym.design.sources:CountEffect",
    "WideSymbols": "tabsym.design.sources:Symbols",
    "ColumnRef": "tabsym.design.formula:ColumnRef",
    "FormulaBinary": "tabsym.design.formula:Binary",
    "FormulaCall": "tabsym.design.formula:Call",
    "FormulaNumber": "tabsym.design.formula:NumberLiteral",
    "WideUnits": "tabsym.design.units:Units",
    "NativeCatBoostClassifier": "tabsym_catboost:NativeCatBoostClassifier",
    "NativeCatBoostRegressor": "tabsym_catboost:NativeCatBoostRegressor",
    "XGBLabelClassifier": "tabsym_xgboost:XGBLabelClassifier",
}
"""Registered name -> where the class is now, as ``module:attribute``."""

ROOTS = frozenset(
    """
    AugmentedModel CrossFit DateParts FilledEncoder HistClassifier JitterPredictor JitterTreeClassifier
    JitterTreeRegressor Jittered MODLEncoder NativeCatBoostClassifier NativeCatBoostRegressor NativeCategories
    NativePipeline OneHotEncoder PlainPolynomialWrapper PlainTargetEncoder SelectiveNaiveBayesClassifier TIWSEncoder
    WideBoostClassifier WideBoostRegressor WideClassifier WideEncoder WideRegressor WideSGDClassifier WideSGDRegressor
    Winner XGBLabelClassifier
    """.split()
)
"""Those that are models by themselves; the others are parts of one."""

FUNCTIONS: dict[str, str] = {
    "without_column": "tabsym.compare.contenders:_without",
}
"""The same of functions that pipelines hold."""


@cache
def _names() -> dict[tuple[str, str], str]:
    addresses = {**CLASSES, **FUNCTIONS}
    return {(address.split(":")[0], address.split(":")[1]): name for name, address in addresses.items()}


def name_of(module: str, attribute: str) -> str | None:
    """The registered name of a class or function, None where it has none."""
    return _names().get((module, attribute))


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
    | _of("sklearn._loss.loss", "AbsoluteError HalfBinomialLoss HalfGammaLoss HalfMultinomialLoss HalfPoissonLoss")
    | _of("sklearn._loss.loss", "HalfSquaredError PinballLoss")
    | _of("sklearn.impute._base", "SimpleImputer")
    | _of("sklearn.linear_model._glm.glm", "PoissonRegressor")
    | _of("sklearn.linear_model._logistic", "LogisticRegression")
    | _of("sklearn.linear_model._ridge", "Ridge")
    | _of("sklearn.pipeline", "Pipeline")
    | _of("sklearn.preprocessing._data", "MaxAbsScaler StandardScaler")
    | _of("sklearn.preprocessing._encoders", "OneHotEncoder OrdinalEncoder")
    | _of("sklearn.preprocessing._function_transformer", "FunctionTransformer")
    | _of("sklearn.preprocessing._label", "LabelEncoder")
    | _of("sklearn.preprocessing._target_encoder", "TargetEncoder")
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
_LOSSES = _of(
    "sklearn._loss._loss",
    "CyAbsoluteError CyHalfBinomialLoss CyHalfGammaLoss CyHalfMultinomialLoss CyHalfPoissonLoss CyHalfSquaredError "
    "CyPinballLoss",
)
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
