"""Names by which files call tabsym's own types: they stay when modules move, and nothing else of tabsym is built.

A class that becomes part of a fitted estimator gets a line here; `tests/test_export_types.py` says which are missing.
"""

from __future__ import annotations

from functools import cache

CLASSES: dict[str, str] = {
    "Alphabet": "tabsym.codes.alphabet:Alphabet",
    "Cross": "tabsym.codes.cross:Cross",
    "Winner": "tabsym.compare.comparison:Winner",
    "HistClassifier": "tabsym.compare.estimators:HistClassifier",
    "CompareFeatures": "tabsym.compare.features:Features",
    "FilledEncoder": "tabsym.compare.estimators:FilledEncoder",
    "ComparePoints": "tabsym.compare.estimators:_Points",
    "Jittered": "tabsym.compare.estimators:Jittered",
    "NumberFormat": "tabsym.compare.number_format:NumberFormat",
    "CompareColumns": "tabsym.compare.prepare:Columns",
    "PlainPolynomialWrapper": "tabsym.compare.target_encoded:PlainPolynomialWrapper",
    "PlainTargetEncoder": "tabsym.compare.target_encoded:PlainTargetEncoder",
    "Retyping": "tabsym.compare.retyping:Retyping",
    "CrossFit": "tabsym.encoders.crossfit:CrossFit",
    "DateParts": "tabsym.encoders.dates:DateParts",
    "MODLColumn": "tabsym.encoders.modl.column:MODLColumn",
    "MODLEncoder": "tabsym.encoders.modl.encoder:MODLEncoder",
    "NativeCategories": "tabsym.encoders.native:NativeCategories",
    "NativePipeline": "tabsym.encoders.native_pipeline:NativePipeline",
    "OneHotColumn": "tabsym.encoders.onehot.column:OneHotColumn",
    "OneHotEncoder": "tabsym.encoders.onehot.encoder:OneHotEncoder",
    "OneHotOptions": "tabsym.encoders.onehot.options:Options",
    "RareRule": "tabsym.encoders.onehot.rare:RareRule",
    "TIWSEncoder": "tabsym.encoders.tiws.encoder:TIWSEncoder",
    "TIWSColumn": "tabsym.encoders.tiws.rows:TIWSColumn",
    "WideColumn": "tabsym.encoders.wide:WideColumn",
    "WideEncoder": "tabsym.encoders.wide:WideEncoder",
    "OffsetColumn": "tabsym.estimators.offsets:OffsetColumn",
    "Similar": "tabsym.estimators.similar:Similar",
    "WideClassifier": "tabsym.estimators.wide:WideClassifier",
    "WideRegressor": "tabsym.estimators.wide:WideRegressor",
    "WideSGDClassifier": "tabsym.estimators.wide_sgd:WideSGDClassifier",
    "WideSGDRegressor": "tabsym.estimators.wide_sgd:WideSGDRegressor",
    "Huber": "tabsym.losses:Huber",
    "Quantile": "tabsym.losses:Quantile",
    "Tweedie": "tabsym.losses:Tweedie",
    "AugmentedModel": "tabsym.jitter.augmented:AugmentedModel",
    "Calibration": "tabsym.jitter.calibrating:Calibration",
    "JitterPredictor": "tabsym.jitter.predictor:JitterPredictor",
    "JitterTree": "tabsym.jitter.tree_arrays:Tree",
    "TreeColumns": "tabsym.jitter.tree_columns:TreeColumns",
    "JitterTreeClassifier": "tabsym.jitter.tree_estimators:JitterTreeClassifier",
    "JitterTreeRegressor": "tabsym.jitter.tree_estimators:JitterTreeRegressor",
    "MODLGroups": "tabsym.modl.columns:Groups",
    "MODLIntervals": "tabsym.modl.columns:Intervals",
    "MODLTarget": "tabsym.modl.columns:Target",
    "MODLPartition": "tabsym.modl.partition:Partition",
    "WideBoostClassifier": "tabsym.stacking.boost:WideBoostClassifier",
    "WideBoostRegressor": "tabsym.stacking.boost:WideBoostRegressor",
    "Layer": "tabsym.stacking.layer:Layer",
    "PairCounts": "tabsym.stats.pairs:PairCounts",
    "Measure": "tabsym.table.measure:Measure",
    "StoredType": "tabsym.table.restore:StoredType",
    "FittedColumn": "tabsym.tiws.column:FittedColumn",
    "TIWSMethod": "tabsym.tiws.column:Method",
    "TableCounts": "tabsym.tiws.counts:TableCounts",
    "DonorRule": "tabsym.tiws.donors:DonorRule",
    "Likeness": "tabsym.tiws.likeness:Likeness",
    "Covariance": "tabsym.tiws.regression:Covariance",
    "Components": "tabsym.tiws.sums:Components",
    "Sums": "tabsym.tiws.sums:Sums",
    "Observed": "tabsym.tiws.unseen:Observed",
    "TIWSBins": "tabsym.tiws.words:Bins",
    "TIWSSymbols": "tabsym.tiws.words:Symbols",
    "Certainty": "tabsym.wide.certainty:Certainty",
    "TermCovariance": "tabsym.wide.certainty:TermCovariance",
    "AutoInteractions": "tabsym.wide.crosses:AutoInteractions",
    "WideChosen": "tabsym.wide.crosses:Chosen",
    "WideBlock": "tabsym.wide.layout:Block",
    "WideFactor": "tabsym.wide.layout:Factor",
    "WideLayout": "tabsym.wide.layout:Layout",
    "WideNumeric": "tabsym.wide.layout:Numeric",
    "WideTerm": "tabsym.wide.layout:Term",
    "WideLoss": "tabsym.wide.losses:Loss",
    "WideModel": "tabsym.wide.model:WideModel",
    "WideMoments": "tabsym.wide.moments:Moments",
    "Adagrad": "tabsym.wide.optimizers:Adagrad",
    "Adam": "tabsym.wide.optimizers:Adam",
    "RMSprop": "tabsym.wide.optimizers:RMSprop",
    "SGD": "tabsym.wide.optimizers:SGD",
    "StateColumns": "tabsym.wide.optimizers:StateColumns",
    "WideBins": "tabsym.wide.sources:Bins",
    "Crossing": "tabsym.wide.sources:Crossing",
    "WideFlag": "tabsym.wide.sources:Flag",
    "WideRarity": "tabsym.wide.sources:Rarity",
    "WideSymbols": "tabsym.wide.sources:Symbols",
    "ColumnRef": "tabsym.wide.syntax:ColumnRef",
    "WideUnits": "tabsym.wide.units:Units",
    "NativeCatBoostClassifier": "tabsym_catboost:NativeCatBoostClassifier",
    "NativeCatBoostRegressor": "tabsym_catboost:NativeCatBoostRegressor",
    "XGBLabelClassifier": "tabsym_xgboost.labels:XGBLabelClassifier",
}
"""Registered name -> where the class is now, as ``module:attribute``."""

ROOTS = frozenset(
    """
    AugmentedModel CrossFit DateParts FilledEncoder HistClassifier JitterPredictor JitterTreeClassifier
    JitterTreeRegressor Jittered MODLEncoder NativeCatBoostClassifier NativeCatBoostRegressor NativeCategories
    NativePipeline OneHotEncoder PlainPolynomialWrapper PlainTargetEncoder TIWSEncoder WideBoostClassifier
    WideBoostRegressor WideClassifier WideEncoder WideRegressor WideSGDClassifier WideSGDRegressor Winner
    XGBLabelClassifier
    """.split()
)
"""Those that are models by themselves; the others are parts of one."""

FUNCTIONS: dict[str, str] = {
    "without_column": "tabsym.compare.contenders.unseen:_without",
}
"""The same of functions that pipelines hold."""


@cache
def _names() -> dict[tuple[str, str], str]:
    addresses = {**CLASSES, **FUNCTIONS}
    return {(address.split(":")[0], address.split(":")[1]): name for name, address in addresses.items()}


def name_of(module: str, attribute: str) -> str | None:
    """The registered name of a class or function, None where it has none."""
    return _names().get((module, attribute))
