"""Models and encoders as ONNX: their inputs and outputs with their types, `to_onnx`, and converters for skl2onnx."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tabsym.encoders.base import TableTransformer
from tabsym.encoders.lookups import ColumnLookup, lookup_tables
from tabsym.encoders.modl import MODLEncoder
from tabsym.encoders.onehot import OneHotEncoder
from tabsym.encoders.tiws import TIWSEncoder
from tabsym.encoders.wide import WideEncoder
from tabsym.export.onnx_graph import (
    BOOL,
    DOUBLE,
    INT64,
    ML_OPSET,
    OPSET,
    STRING,
    Codes,
    Graph,
    Sum,
    domain_of,
    part_of_date,
    with_default,
)
from tabsym.export.spec import as_text, number_of_part, terms_of
from tabsym.frame.storage import object_array
from tabsym.messages import plural
from tabsym.models.export_terms import Coding, ModelTerms
from tabsym.models.wide import WideClassifier, WideRegressor
from tabsym.models.wide_sgd import WideSGDClassifier, WideSGDRegressor

IR_VERSION = 8
OPSETS = {"": 13, "ai.onnx.ml": 2}
"""The lowest that have what the nodes need."""
EXACT = 2**53
"""Whole numbers beyond this are not all doubles."""
_CLASSIFIERS = (WideClassifier, WideSGDClassifier)
_REGRESSORS_AND_ENCODERS = (WideRegressor, WideSGDRegressor, MODLEncoder, OneHotEncoder, TIWSEncoder, WideEncoder)


def to_onnx(model: Any, path: str | os.PathLike[str] | None = None, *, missing_text: str = "") -> Any:
    """A fitted model or encoder as ONNX.

    Inputs are the columns that are used, by their names, (n, 1): strings for columns of text, doubles for all others
    (booleans are 0 and 1, dates are days since 1970-01-01 with the time of day as a fraction, durations are days). A
    missing number is NaN, a missing text is `missing_text`. All is computed in double
    precision, with opset 18, and 3 of ai.onnx.ml, which onnxruntime runs from 1.14 on.

    The outputs have the names that skl2onnx gives: ``variable`` (n, 1), the prediction; of a classifier ``label`` (n,)
    and ``probabilities`` (n, classes), or, where it has none, ``scores``; of an encoder ``variable`` (n, columns).
    Nothing raises an error while it runs: a missing number without a fill gives NaN.

    Parameters
    ----------
    model : WideClassifier, WideRegressor, WideSGDClassifier or WideSGDRegressor
        Also behind `DateParts` in a pipeline, or the winner of a comparison, whose columns of categories are text. Or
        MODLEncoder, OneHotEncoder, TIWSEncoder or WideEncoder, as far as each value of a column has one encoding;
        columns that an encoder passes on are numbers, or, where its output has no numbers, text.
    path : path, optional
        Where to write the file as well.
    missing_text : str, default ""
        No category of a column of text may be equal to it.

    Returns
    -------
    onnx.ModelProto

    Raises
    ------
    ValueError, TypeError
        A part of the model has no ONNX, with a message that names it.

    Examples
    --------
    >>> import onnxruntime
    >>> import pandas as pd
    >>> from tabsym import WideRegressor
    >>> from tabsym.export import to_onnx
    >>> X, y = pd.DataFrame({"town": ["Ulm", "Bonn"] * 9}), [1.0, 3.0] * 9
    >>> onnx_model = to_onnx(WideRegressor().fit(X, y))
    >>> session = onnxruntime.InferenceSession(onnx_model.SerializeToString())
    >>> session.run(None, {"town": X[["town"]].head(2).to_numpy(dtype=object)})[0].round(1).tolist()
    [[1.0], [3.0]]
    """
    try:
        import onnx  # noqa: F401
    except ModuleNotFoundError:
        raise ModuleNotFoundError('to_onnx needs onnx: pip install "tabsym[export]".', name="onnx") from None
    parts = parts_of(model, missing_text)
    parts.inputs = {name: STRING if kind is None else kind for name, kind in parts.inputs.items()}
    if not parts.inputs:
        raise ValueError("The model uses no column: its prediction is the same for all rows, and needs no ONNX.")
    for name in parts.outputs:
        if name in parts.inputs:
            raise ValueError(f"The table has a column {name!r}, as an output would be called; rename it before fit.")
    prefix = "tabsym_"
    while any(name.startswith(prefix) for name in parts.inputs):
        prefix += "_"
    graph = Graph(prefix)
    outputs = parts.build(graph, {name: name for name in parts.inputs})
    proto = _proto(graph, parts, outputs, type(model).__name__, missing_text)
    if path is not None:
        Path(path).write_bytes(proto.SerializeToString())
    return proto


def _proto(graph: Graph, parts: GraphParts, outputs: dict[str, str], name: str, missing_text: str) -> Any:
    from onnx import helper, numpy_helper

    from tabsym import __version__

    nodes = [
        helper.make_node(operator, list(inputs), [output], domain=domain_of(operator), **attributes)
        for operator, inputs, output, attributes in graph.nodes
    ]
    nodes += [helper.make_node("Identity", [tensor], [output]) for output, tensor in outputs.items()]
    inputs = [
        helper.make_tensor_value_info(column, kind, ["n", 1])  # type: ignore[arg-type]
        for column, kind in parts.inputs.items()
    ]
    puts = [
        helper.make_tensor_value_info(output, kind, ["n"] if width is None else ["n", width])
        for output, (kind, width) in parts.outputs.items()
    ]
    constants = [numpy_helper.from_array(value, constant) for constant, value in graph.constants.items()]
    made = helper.make_model(
        helper.make_graph(nodes, name, inputs, puts, constants),
        opset_imports=[helper.make_opsetid("", OPSET), helper.make_opsetid("ai.onnx.ml", ML_OPSET)],
        ir_version=IR_VERSION,
        producer_name="tabsym",
        producer_version=__version__,
    )
    helper.set_model_props(made, {"missing_text": missing_text})
    return made


# -- what becomes a graph ---------------------------------------------------------------------------------


class GraphParts:
    """What is made into a graph: inputs with their types, outputs with their types and widths, and how.

    Attributes
    ----------
    inputs : dict of str -> int or None
        STRING or DOUBLE by column of the table; None where either will do.
    outputs : dict of str -> (int, int or None)
        Type and columns; None for a vector.
    features : tuple of str
        The columns of fit, in order.
    """

    inputs: dict[str, int | None]
    outputs: dict[str, tuple[int, int | None]]
    features: tuple[str, ...]

    def build(self, graph: Graph, columns: dict[str, str]) -> dict[str, str]:
        """Add the nodes; from the tensors of the inputs to those of the outputs."""
        raise NotImplementedError


def parts_of(model: Any, missing_text: str) -> GraphParts:
    """What `to_onnx` and the converters of skl2onnx make of a model or encoder."""
    if isinstance(model, TableTransformer):
        return _EncoderParts(model, lookup_tables(model), missing_text)
    return _ModelParts(terms_of(model), missing_text)


class _ModelParts(GraphParts):
    def __init__(self, terms: ModelTerms, missing_text: str) -> None:
        refuse_checked([name for name, _ in terms.checked])
        self.terms, self.missing_text, self.features = terms, missing_text, terms.features
        codings: dict[str, list[Coding]] = {name: [] for name in terms.columns}
        for term in terms.terms:
            for factor in term.lookups:
                for index, name in zip(terms.tables[factor.table].codings, factor.columns, strict=True):
                    codings[name].append(terms.codings[index])
        dates = {derived.source for derived in terms.derived.values() if derived.part != "text"}
        self.inputs = {
            terms.source(name): DOUBLE
            if terms.source(name) in dates
            else input_type(terms.source(name), kind, codings[name], missing_text)
            for name, kind in terms.columns.items()
        }
        if terms.offset is not None:
            self.inputs[terms.offset.name] = DOUBLE
        if terms.classes is None:
            self.outputs = {"variable": (DOUBLE, 1)}
        else:
            scores = "probabilities" if terms.link in ("logit", "softmax") else "scores"
            width = 1 if scores == "scores" and terms.n_outputs == 1 else len(terms.classes)
            self.classes, kind = _labels(terms.classes)
            self.outputs = {"label": (kind, None), scores: (DOUBLE, width)}

    def build(self, graph: Graph, columns: dict[str, str]) -> dict[str, str]:
        """Add the sum of the terms, and what the link makes of it; the names of the outputs."""
        tensors = {name: self._tensor(graph, columns, name) for name in self.terms.columns}
        if self.terms.offset is not None:
            tensors[self.terms.offset.name] = columns[self.terms.offset.name]
        texts = {name for name in self.terms.columns if self.inputs[self.terms.source(name)] == STRING}
        codes = Codes(graph, self.terms.codings, tensors or columns, texts, self.missing_text, self._number_of)
        margins = Sum(self.terms, codes).margins()
        if self.terms.classes is None:
            return {"variable": graph.add("Exp", margins) if self.terms.link == "log" else margins}
        if self.terms.n_outputs == 1:
            above = graph.add("Greater", margins, graph.constant(0.0))
            position = graph.cast(graph.add("Squeeze", above, graph.constant([1])), INT64)
        else:
            position = graph.add("ArgMax", margins, axis=1, keepdims=0)
        outputs = {"label": graph.add("Gather", graph.constant(self.classes), position)}
        if "scores" in self.outputs:
            return outputs | {"scores": margins}
        if self.terms.n_outputs == 1:
            margins = graph.add("Concat", graph.add("Sub", margins, margins), margins, axis=1)
        return outputs | {"probabilities": graph.add("Softmax", margins, axis=1)}

    def _tensor(self, graph: Graph, columns: dict[str, str], name: str) -> str:
        tensor = columns[self.terms.source(name)]
        part = self._part(name)
        return tensor if part is None else part_of_date(graph, tensor, part)

    def _part(self, column: str) -> str | None:
        """The part of a date that a column is; None for the day, which is what there is of a date, and others."""
        made = self.terms.derived.get(column)
        return None if made is None or made.part in ("day", "text") else made.part

    def _number_of(self, column: str, category: Any) -> float:
        return _number_of(column, category) if self._part(column) is None else float(number_of_part(category))


class _EncoderParts(GraphParts):
    def __init__(self, encoder: Any, lookups: list[ColumnLookup], missing_text: str) -> None:
        refuse_checked([lookup.column for lookup in lookups if lookup.checked])
        self.lookups, self.missing_text = {lookup.column: lookup for lookup in lookups}, missing_text
        self.features = tuple(map(str, encoder.get_feature_names_in()))
        self.inputs = {
            name: input_type(name, lookup.kind, [lookup.coding], missing_text) for name, lookup in self.lookups.items()
        }
        others = [name for name in self.features if name not in self.lookups]
        passed = {name: STRING if name in encoder._texts_in else DOUBLE for name in others}
        kinds = {one.column: STRING if one.values.dtype == object else DOUBLE for one in lookups if one.names} | passed
        text = next((name for name, kind in kinds.items() if kind == STRING), None)
        number = next((name for name, kind in kinds.items() if kind == DOUBLE), None)
        if text in passed and number is not None:
            raise ValueError(
                f"The encoder passes on the text of column {text!r} along with numbers, such as those of column "
                f"{number!r}, and an ONNX output has one type; encode {text!r}, too, or leave it out of the table."
            )
        if text is not None and number is not None:
            raise ValueError(
                f"The encoder makes text of some columns and numbers of column {number!r}, and an ONNX output has one "
                "type; encode them by two encoders."
            )
        self.inputs = {name: self.inputs[name] if name in self.lookups else passed[name] for name in self.features}
        width = sum(len(self.lookups[name].names) if name in self.lookups else 1 for name in self.features)
        if not width:
            raise ValueError(
                "The encoder makes no column, as all are constant or dropped, and an ONNX output has at least one; fit "
                "with drop=None and drop_invariant=False."
            )
        self.outputs = {"variable": (DOUBLE if text is None else STRING, width)}

    def build(self, graph: Graph, columns: dict[str, str]) -> dict[str, str]:
        """Add the lookups of the encoded columns; the name of the output, in which all columns are."""
        codings = tuple(lookup.coding for lookup in self.lookups.values())
        texts = {name for name, kind in self.inputs.items() if kind == STRING}
        codes = Codes(graph, codings, columns, texts, self.missing_text, _number_of)
        tensors = []
        for name in self.features:
            if name not in self.lookups:
                tensors.append(columns[name])
            elif self.lookups[name].names:
                rows = codes.of(list(self.lookups).index(name), name)
                tensors.append(self._encoded(graph, self.lookups[name], rows))
        return {"variable": graph.add("Concat", *tensors, axis=1)}

    def _encoded(self, graph: Graph, lookup: ColumnLookup, rows: str) -> str:
        """(n, outputs)"""
        values = with_default(lookup.coding, lookup.values[:-1], lookup.values[-1])
        if values.ndim > 1:
            if values.dtype == object:
                values = np.where(values == None, "", values)  # noqa: E711 (by element)
            return graph.add("Gather", graph.constant(values), rows)
        position = graph.add("Gather", graph.constant(values.astype(np.int64)[:, None]), rows)
        ones = graph.cast(graph.add("Equal", position, graph.constant(np.arange(len(lookup.names))[None, :])), DOUBLE)
        if not (values == -2).any():
            return ones
        is_nan = graph.add("Equal", position, graph.constant(-2))
        return graph.add("Where", is_nan, graph.constant(np.nan), ones)


def refuse_checked(names: Iterable[str]) -> None:
    """A `ValueError` that names the first column whose unknown categories are to be errors."""
    for name in names:
        raise ValueError(
            f"handle_unknown='error' raises an error for unknown categories of column {name!r}, which ONNX cannot; use "
            "set_params with another handle_unknown to export it."
        )


def input_type(name: str, kind: str, codings: Iterable[Coding], missing_text: str) -> int | None:
    """STRING or DOUBLE, or None where either will do.

    Raises
    ------
    ValueError
        The column holds other values, with a message that names it.
    """
    types = set[int]() if kind == "category" else {DOUBLE}  # dates and durations are days
    for coding in codings:
        if coding.categories is None:
            types.add(DOUBLE)
            continue
        values = [value for value in coding.categories.tolist() if value is not None]
        types |= {_type_of(name, value) for value in values}
        if missing_text in values:
            raise ValueError(
                f"{missing_text!r} is a category of column {name!r} and would stand for missing text, too; choose "
                "another missing_text."
            )
    return types.pop() if types else None  # a column has values of one type


def whole_days(value: Any) -> int | None:
    """A date, or a moment at midnight without a time zone, as days since 1970; None for other values."""
    if isinstance(value, dt.datetime):
        if value.tzinfo is not None or value.time() != dt.time() or getattr(value, "nanosecond", False):
            return None
        value = value.date()
    return (value - dt.date(1970, 1, 1)).days if isinstance(value, dt.date) else None


def _type_of(name: str, value: Any) -> int:
    if whole_days(value) is not None:
        return DOUBLE
    if isinstance(value, (dt.date, dt.timedelta, np.datetime64, np.timedelta64)):
        raise ValueError(
            f"Column {name!r} holds {value!r} as a category, and the days that ONNX gets in place of dates are not "
            "exact enough for moments and durations; make them dates, numbers or text before fit, or use to_spec."
        )
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, str):
        return STRING
    if isinstance(value, float) or (isinstance(value, int) and abs(value) <= EXACT):
        return DOUBLE
    raise ValueError(
        f"Column {name!r} holds {value!r}, which is neither text nor a double, as inputs of ONNX are; {as_text(value)}."
    )


def _number_of(column: str, category: Any) -> float:
    days = whole_days(category)
    return float(category if days is None else days)


def _labels(classes: NDArray[Any]) -> tuple[NDArray[Any], int]:
    """The classes as a tensor, and its type."""
    values = classes.tolist()
    for kind, types in ((BOOL, bool), (INT64, int), (DOUBLE, float), (STRING, str)):
        if all(isinstance(value, types) for value in values):
            return object_array(values) if types is str else np.array(values), kind
    raise ValueError(
        f"The classes {values[0]!r}, {values[1]!r} ... are not all text, whole numbers, numbers or booleans, as labels "
        "of ONNX are; make them text before fit."
    )


# -- converters for skl2onnx ------------------------------------------------------------------------------


def register_onnx_converters() -> None:
    """Let skl2onnx convert pipelines with steps of tabsym, which `to_onnx` alone would not.

    Afterwards ``skl2onnx.to_onnx`` and ``convert_sklearn`` take `WideClassifier`, `WideRegressor`,
    `WideSGDClassifier`, `WideSGDRegressor`, `MODLEncoder`, `OneHotEncoder`, `TIWSEncoder` and `WideEncoder`. Each of
    their inputs is text, or a number of any type. Outputs are doubles if an input is, else floats, as skl2onnx has it;
    with ``zipmap``, which has no doubles, probabilities are floats. The option ``missing_text`` is that of `to_onnx`.

    Examples
    --------
    >>> import pandas as pd
    >>> import skl2onnx
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from tabsym import OneHotEncoder
    >>> from tabsym.export import register_onnx_converters
    >>> X = pd.DataFrame({"colour": ["red", "blue"] * 20})
    >>> model = make_pipeline(OneHotEncoder(), LogisticRegression()).fit(X, [1, 0] * 20)
    >>> register_onnx_converters()
    >>> types = [("colour", skl2onnx.common.data_types.StringTensorType([None, 1]))]
    >>> [one.name for one in skl2onnx.to_onnx(model, initial_types=types, options={"zipmap": False}).graph.output]
    ['label', 'probabilities']
    """
    try:
        from skl2onnx import update_registered_converter
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            'register_onnx_converters needs skl2onnx: pip install "tabsym[export]".', name="skl2onnx"
        ) from None
    options: dict[str, Any] = {"missing_text": None}
    of_classes = options | {"zipmap": [True, False, "columns"], "output_class_labels": [False, True], "nocl": [False]}
    for kinds, parser, allowed in ((_CLASSIFIERS, None, of_classes), (_REGRESSORS_AND_ENCODERS, _parse, options)):
        for kind in kinds:
            update_registered_converter(kind, _alias(kind), _set_types, _convert, parser=parser, options=allowed)


def _alias(kind: type) -> str:
    return f"Tabsym{kind.__name__}"


def _parse(scope: Any, model: Any, inputs: list[Any], custom_parsers: Any = None) -> list[Any]:
    """The output of a step in its type: the following steps choose theirs by it, before types are set."""
    operator = scope.declare_local_operator(_alias(type(model)), model)
    operator.inputs = inputs
    operator.outputs.append(scope.declare_local_variable("variable", _numbers_of(inputs)()))
    return operator.outputs


def _numbers_of(inputs: list[Any]) -> Any:
    from skl2onnx.common import data_types as types

    has_doubles = any(isinstance(variable.type, types.DoubleTensorType) for variable in inputs)
    return types.DoubleTensorType if has_doubles else types.FloatTensorType


def _parts(operator: Any) -> GraphParts:
    options = operator.scope_inst.get_options(operator.raw_operator, {"missing_text": ""}, fail=False)
    return parts_of(operator.raw_operator, options["missing_text"] or "")


def _set_types(operator: Any) -> None:
    """The types and shapes of the outputs."""
    from skl2onnx.common import data_types as types

    options = operator.scope_inst.get_options(operator.raw_operator, {"zipmap": True}, fail=False)
    zipped = isinstance(operator.raw_operator, _CLASSIFIERS) and options["zipmap"] is True
    numbers = types.FloatTensorType if zipped else _numbers_of(operator.inputs)
    n = operator.inputs[0].get_first_dimension()
    for variable, (name, (kind, width)) in zip(operator.outputs, _parts(operator).outputs.items(), strict=True):
        made = numbers if kind == DOUBLE else types.StringTensorType if kind == STRING else types.Int64TensorType
        if name == "label" and kind == DOUBLE:
            not_whole = next((label for label in operator.raw_operator.classes_.tolist() if label != int(label)), None)
            if not_whole is not None:
                raise ValueError(f"The class {not_whole!r} is no label of skl2onnx, which are whole numbers or text.")
            made = types.Int64TensorType
        variable.set_type(made([n] if width is None else [n, width]))


def _convert(scope: Any, operator: Any, container: Any) -> None:
    if any(container.target_opset_any_domain(domain) < version for domain, version in OPSETS.items()):
        raise ValueError(f"tabsym's nodes need target_opset={OPSETS} or higher.")
    parts = _parts(operator)
    graph = Graph(scope.get_unique_variable_name("tabsym") + "_")
    outputs = parts.build(graph, _columns(graph, operator.inputs, parts))
    for (name, tensor), variable in zip(outputs.items(), operator.outputs, strict=True):
        to = _type_of_variable(variable)
        text = parts.outputs[name][0] == STRING
        graph.nodes.append(("Identity" if text else "Cast", (tensor,), variable.full_name, {} if text else {"to": to}))
    for name, values in graph.constants.items():
        kind = {"O": STRING, "f": DOUBLE, "i": INT64, "b": BOOL}[values.dtype.kind]
        container.add_initializer(name, kind, list(values.shape), values.ravel().tolist())
    for node, inputs, output, attributes in graph.nodes:
        domain = domain_of(node)
        container.add_node(
            node,
            list(inputs),
            [output],
            op_domain=domain,
            op_version=OPSETS[domain] if domain else None,  # the default is one that skl2onnx itself refuses
            name=scope.get_unique_operator_name(node),
            **attributes,
        )


def _columns(graph: Graph, variables: list[Any], parts: GraphParts) -> dict[str, str]:
    """The tensors (n, 1) of the inputs, by name where the variables are the columns of fit, else by their order."""
    if {variable.raw_name for variable in variables} == set(parts.features) and len(variables) == len(parts.features):
        positions: dict[str, tuple[Any, int | None]] = {variable.raw_name: (variable, None) for variable in variables}
    else:
        widths = [variable.type.shape[1] if len(variable.type.shape) > 1 else 1 for variable in variables]
        if len(variables) == 1:
            widths = [len(parts.features)]  # which the variable may lack
        if None in widths or sum(widths) != len(parts.features):
            raise ValueError(
                f"The step was fitted on {plural(len(parts.features), 'column')}, and its inputs have {widths}; give "
                "each column its type in initial_types, [None, 1]."
            )
        order = [
            (variable, position if width > 1 else None)
            for variable, width in zip(variables, widths)
            for position in range(width)
        ]
        positions = dict(zip(parts.features, order, strict=True))
    tensors = {}
    for name, (variable, position) in positions.items():
        if name in parts.inputs or not parts.inputs:
            tensor = variable.full_name
            tensor = tensor if position is None else graph.add("Gather", tensor, graph.constant([position]), axis=1)
            tensors[name] = _converted(graph, tensor, name, _type_of_variable(variable), parts)
    return tensors


def _converted(graph: Graph, tensor: str, name: str, given: int, parts: GraphParts) -> str:
    """A tensor as the type that the column needs, which it takes from the tensor where any will do."""
    if parts.inputs.get(name) is None:
        parts.inputs[name] = STRING if given == STRING else DOUBLE
    needed = parts.inputs[name]
    if (given == STRING) != (needed == STRING):
        raise ValueError(
            f"Column {name!r} was {'text' if needed == STRING else 'numbers'} in fit, and its input is "
            f"{'text' if given == STRING else 'numbers'}; give it its type in initial_types."
        )
    return tensor if needed in (given, STRING) else graph.cast(tensor, DOUBLE)


def _type_of_variable(variable: Any) -> int:
    return int(variable.type.to_onnx_type().tensor_type.elem_type)
