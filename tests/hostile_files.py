"""Files that are no models: for every kind of node that skops has one that would do harm, and damaged ones.

`write(folder)` makes them, `python -m tests.hostile_files FOLDER` loads them where an audit hook watches.
"""

import contextlib
import io
import json
import pickle
import struct
import sys
import zipfile
from itertools import count
from pathlib import Path

import numpy as np

NUMBER = count(1)


def node(kind, full, **parts):
    module, _, name = full.rpartition(".")
    return {"__loader__": kind, "__module__": module, "__class__": name, "__id__": next(NUMBER), **parts}


def scalar(value):
    return {"__loader__": "JsonNode", "__module__": "builtins", "__class__": "str", "content": json.dumps(value)}


def items(*values, kind="ListNode", full="builtins.list"):
    return node(kind, full, content=list(values))


def pair(**values):
    return node("DictNode", "builtins.dict", content=values)


def tuple_of(*values):
    return items(*values, kind="TupleNode", full="builtins.tuple")


def within(bad):
    """A model of tabsym that holds it."""
    return node("ObjectNode", "tabsym.OneHotEncoder", content=pair(cols=bad))


def command(path):
    return [scalar("sh"), scalar("-c"), scalar(f"touch {path}")]


def schemas(owned):
    """Name -> schema, as a file's JSON; `owned`: a path that must not come to be."""
    shell, text = command(owned), scalar(f"touch {owned}")
    popen = "numpy.distutils.fcompiler.gnu.Popen"
    function = node("FunctionNode", "os.system")
    named = {
        "set-doubled": within(items(doubled(60), kind="SetNode", full="builtins.set")),
        "escape-type": within(node("ObjectNode", "evil\x1b[2J\n.Type\u202e")),
        "escape-root": node("ObjectNode", "evil\x1b[2J\n.Type\u202e"),
        "escape-kind": within(node("Evil\x1b[2JNode", "builtins.list")),
        "list-popen": items(*shell, full=popen),
        "list-subprocess": items(*shell, full="subprocess.Popen"),
        "set-popen": items(*shell, kind="SetNode", full=popen),
        "tuple-popen": items(*shell, kind="TupleNode", full=popen),
        "tuple-namedtuple": items(scalar(1), kind="TupleNode", full="tabsym.compare.text.Popen"),
        "dict-thread": node("DictNode", "threading.Thread", content={}),
        "dict-popen": node("DictNode", popen, content={"args": scalar("id")}),
        "dict-key-types": node("DictNode", "builtins.dict", content={"id": scalar(1)}, key_types=["os.system"]),
        "dict-key-node": node("DictNode", "builtins.dict", content={"id": scalar(1)}, key_types=items(function)),
        "dict-key-short": node("DictNode", "builtins.dict", content={"a": scalar(1)}, key_types=[]),
        "dict-key-lie": node("DictNode", "builtins.dict", content={"a": scalar(1)}, key_types=["builtins.int"]),
        "default-system": node("DefaultDictNode", "collections.defaultdict",
                               content={"main": pair(), "default_factory": function}),
        "default-popen": node("DefaultDictNode", popen, content={"main": pair(), "default_factory": scalar(None)}),
        "default-input": node("DefaultDictNode", "collections.defaultdict",
                              content={"main": pair(), "default_factory": node("TypeNode", "builtins.input")}),
        "function-system": function,
        "function-posix": node("FunctionNode", "posix.system"),
        "function-walk": node("FunctionNode", "sklearn.utils.os.system"),
        "function-f2py": node("FunctionNode", "numpy.f2py.main"),
        "function-eval": node("FunctionNode", "builtins.eval"),
        "function-pickle": node("FunctionNode", "pandas.read_pickle"),
        "function-own": node("FunctionNode", "tabsym.WideClassifier"),
        "function-dotted": node("FunctionNode", "tabsym.OneHotEncoder.__init__"),
        "function-reduce": node("FunctionNode", "sklearn.utils.validation.check_array.__globals__"),
        "type-popen": node("TypeNode", "subprocess.Popen"),
        "type-function": node("TypeNode", "types.FunctionType"),
        "type-eval": node("TypeNode", "builtins.eval"),
        "type-antigravity": node("TypeNode", "antigravity.fly"),
        "type-this": node("TypeNode", "this.s"),
        "object-antigravity": node("ObjectNode", "antigravity.Fly", content=pair()),
        "object-thread": node("ObjectNode", "threading.Thread", content=pair(_target=function)),
        "object-datasource": node("ObjectNode", "numpy.lib._datasource.DataSource",
                                  content=pair(_destpath=scalar(str(owned.parent)), _istmpdest=scalar(True))),
        "object-temporary": node("ObjectNode", "tempfile.TemporaryDirectory", content=pair(name=text)),
        "object-handler": node("ObjectNode", "logging.FileHandler", content=pair(baseFilename=text)),
        "object-module": node("ObjectNode", "tabsym.models.model.WideModel", content=pair()),
        "object-compare": node("ObjectNode", "tabsym.Popen", content=pair()),
        "object-list": node("ObjectNode", "tabsym.WideModel", content=items(scalar(1))),
        "object-text": node("ObjectNode", "tabsym.Categories", content=scalar("symbols")),
        "object-dunder": node("ObjectNode", "tabsym.Categories", content=pair(__class__=scalar("Popen"))),
        "object-number-keys": node("ObjectNode", "tabsym.Categories", content=node(
            "DictNode", "builtins.dict", content={"1": scalar(1)}, key_types=["builtins.int"])),
        "reduce-gzip": node("ConstructorFromReduceNode", "sklearn.datasets._covtype.GzipFile",
                            content=tuple_of(scalar(str(owned)), scalar("w"))),
        "reduce-popen": node("ConstructorFromReduceNode", popen, content=tuple_of(text)),
        "reduce-open": node("ConstructorFromReduceNode", "builtins.open", content=tuple_of(text, scalar("w"))),
        "reduce-encoder": node("ConstructorFromReduceNode", "tabsym.OneHotEncoder", content=tuple_of()),
        "reduce-date": node("ConstructorFromReduceNode", "datetime.date", content=tuple_of(items())),
        "reduce-date-many": node("ConstructorFromReduceNode", "datetime.date", content=tuple_of(scalar("x"))),
        "method-system": node("MethodNode", "tabsym.OneHotEncoder", content={"func": "fit", "obj": within(text)}),
        "method-init": node("MethodNode", popen, content={"func": "__init__", "obj": items(*shell, full=popen)}),
        "operator-methodcaller": node("OperatorFuncNode", "operator.methodcaller", attrs=tuple_of(scalar("system"))),
        "operator-attrgetter": node("OperatorFuncNode", "operator.attrgetter", attrs=tuple_of(scalar("__class__"))),
        "operator-call": node("OperatorFuncNode", "operator.call", attrs=tuple_of(function, text)),
        "operator-concat": node("OperatorFuncNode", "operator.iconcat", attrs=tuple_of(items(), items())),
        "partial-system": partial(function, tuple_of(text)),
        "partial-check": partial(node("FunctionNode", "sklearn.utils.validation.check_array"), tuple_of(text)),
        "partial-partial": partial(partial(function, tuple_of(text)), tuple_of()),
        "partial-type": partial(node("TypeNode", "builtins.int"), tuple_of()),
        "partial-namespace": partial(node("FunctionNode", "numpy.asarray"), tuple_of(), pair(x=function)),
        "partial-name": {**partial(function, tuple_of()), "__class__": "partialmethod"},
        "loss-popen": node("LossNode", popen, **{"__reduce__": {"args": tuple_of(*shell)}}, content=pair()),
        "loss-arguments": node("LossNode", "sklearn._loss._loss.CyHalfSquaredError",
                               **{"__reduce__": {"args": tuple_of(text)}}, content=pair()),
        "loss-state": node("LossNode", "sklearn._loss._loss.CyHalfSquaredError",
                           **{"__reduce__": {"args": tuple_of()}}, content=pair(x=scalar(1))),
        "tree": node("TreeNode", "sklearn.tree._tree.Tree", **{"__reduce__": {"args": tuple_of()}}, content=pair()),
        "forest": node("QuantileForestNode", "quantile_forest._quantile_forest_fast.QuantileForest",
                       **{"__reduce__": {"args": tuple_of()}}, content=pair()),
        "deprecated-keys": node("_DictWithDeprecatedKeysNode", "sklearn._DictWithDeprecatedKeys", content={}),
        "masked": node("MaskedArrayNode", "numpy.ma.MaskedArray", content={"data": scalar(1), "mask": scalar(1)}),
        "dtype-text": node("DTypeNode", "numpy.dtype", content=text),
        "dtype-popen": node("DTypeNode", popen, content=text),
        "bytes-popen": node("BytesNode", popen, file="0.bin"),
        "bytes-missing": node("BytesNode", "builtins.bytes", file="7.bin"),
        "bytes-outside": node("BytesNode", "builtins.bytes", file="../../etc/passwd"),
        "bytes-absolute": node("BytesNode", "builtins.bytes", file="/etc/passwd"),
        "bytearray-array": node("BytearrayNode", "builtins.bytearray", file="0.npy"),
        "slice-system": node("SliceNode", "builtins.slice", content={"start": function, "stop": None, "step": None}),
        "slice-popen": node("SliceNode", popen, content={"start": 1, "stop": None, "step": None}),
        "array-missing": node("NdArrayNode", "numpy.ndarray", type="numpy", file="7.npy"),
        "array-popen": node("NdArrayNode", popen, type="numpy", file="0.npy"),
        "array-memmap": node("NdArrayNode", "numpy.memmap", type="numpy", file="0.npy"),
        "array-kind": node("NdArrayNode", "numpy.ndarray", type="pickle", file="0.npy"),
        "array-pickled": node("NdArrayNode", "numpy.ndarray", type="numpy", file="1.npy"),
        "array-huge": node("NdArrayNode", "numpy.ndarray", type="numpy", file="2.npy"),
        "array-no-array": node("NdArrayNode", "numpy.ndarray", type="numpy", file="3.npy"),
        "array-negative": node("NdArrayNode", "numpy.ndarray", type="numpy", file="4.npy"),
        "array-code": node("NdArrayNode", "numpy.ndarray", type="numpy", file="5.npy"),
        "array-scalar": node("NdArrayNode", "numpy.float64", type="numpy", file="0.npy"),
        "array-shape": node("NdArrayNode", "numpy.ndarray", type="json", content=[scalar(1)], shape=[10**12]),
        "array-shape-text": node("NdArrayNode", "numpy.ndarray", type="json", content=[scalar(1)], shape=["1"]),
        "array-items": node("NdArrayNode", "numpy.ndarray", type="json", content=[function], shape=[1]),
        "sparse-popen": node("SparseMatrixNode", popen, type="scipy", file="0.npy"),
        "sparse-skops": node("SparseMatrixNode", "scipy.sparse._csr.csr_array", type="scipy", file="0.npy"),
        "sparse-outside": node("SparseMatrixNode", "scipy.sparse._csr.csr_array", data="0.npy", indices="6.npy",
                               indptr="6.npy", shape=[2, 2]),
        "random-popen": node("RandomStateNode", popen, content=pair()),
        "random-place": random_state(2**31 - 1),
        "random-kind": node("RandomStateNode", "numpy.random.mtrand.RandomState",
                            content=pair(bit_generator=scalar("set_bit_generator"), state=pair())),
        "generator-seed": node("RandomGeneratorNode", "numpy.random._generator.Generator", content={
            "bit_generator": pair(bit_generator=scalar("seed")), "seed_seq": pair()}),
        "generator-huge": node("RandomGeneratorNode", "numpy.random._generator.Generator", content={
            "bit_generator": pair(bit_generator=scalar("PCG64"), state=pair(state=scalar(1), inc=scalar(1))),
            "seed_seq": pair(entropy=scalar(1), pool_size=scalar(10**12))}),
        "cached-nothing": {"__loader__": "CachedNode", "__id__": 10**6},
        "cached-text": {"__loader__": "CachedNode", "__id__": "1"},
        "json-list": {**scalar(1), "content": "[1]"},
        "json-number": {**scalar(1), "content": 1},
        "json-broken": {**scalar(1), "content": "{"},
        "json-deep": {**scalar(1), "content": "[" * 100_000},
        "json-long-number": {**scalar(1), "content": "9" * 100_000},
        "no-node": 1,
        "no-kind": {"__module__": "builtins", "__class__": "str"},
        "kind-unknown": node("PickleNode", "builtins.str", content="x"),
        "kind-no-text": node(["ListNode"], "builtins.list", content=[]),
        "module-no-text": {**items(), "__module__": ["os"]},
        "class-none": {**items(), "__class__": None},
        "content-missing": node("ListNode", "builtins.list"),
        "content-text": node("ListNode", "builtins.list", content="abc"),
        "content-list": node("DictNode", "builtins.dict", content=[]),
        "key-too-many": node("ListNode", "builtins.list", content=[], __reduce__=function),
        "lightgbm-handle": node("ObjectNode", "lightgbm.basic.Booster", content=pair(_handle=scalar(2**40))),
        "lightgbm-none": node("ObjectNode", "lightgbm.basic.Booster", content=pair(_handle=scalar(None),
                                                                                  handle=scalar("tree\n"))),
        "lightgbm-network": node("ObjectNode", "lightgbm.basic.Booster", content=pair(_handle=scalar("tree\n"),
                                                                                     _network=scalar(True))),
        "lightgbm-empty": node("ObjectNode", "lightgbm.basic.Booster"),
        "xgboost-handle": node("ObjectNode", "xgboost.core.Booster", content=pair(handle=scalar(2**40))),
        "xgboost-none": node("ObjectNode", "xgboost.core.Booster", content=pair(handle=scalar(None))),
        "catboost-text": node("ObjectNode", "catboost.core.CatBoostRegressor", content=pair(__model=scalar("x"))),
        "catboost-evals": node("ObjectNode", "catboost.core.CatBoostRegressor", content=pair(_test_evals=items())),
    }  # fmt: skip
    whole = {name: within(bad) for name, bad in named.items()}
    twice = scalar(1) | {"__id__": 77}
    whole["numbers-twice"] = within(items(twice, items() | {"__id__": 77}, items() | {"__id__": 77}))
    inner = items()
    inner["content"].append({"__loader__": "CachedNode", "__id__": inner["__id__"]})
    whole["cycle"] = within(inner)
    whole["deep"] = within(_nested(200))
    whole |= {f"root-{name}": named[name] for name in ("list-popen", "function-system", "object-thread", "no-kind")}
    whole |= {"root-list": items(), "root-part": node("ObjectNode", "tabsym.Categories", content=pair())}
    whole |= {"root-winner-empty": node("ObjectNode", "tabsym.Winner", content=pair())}
    return whole


def partial(func, args, namespace=None):
    parts = {"func": func, "args": args, "kwds": pair(), "namespace": namespace or scalar(None)}
    return node("PartialNode", "functools.partial", content=parts)


def random_state(pos):
    inner = pair(key=node("NdArrayNode", "numpy.ndarray", type="numpy", file="8.npy"), pos=scalar(pos))
    state = pair(bit_generator=scalar("MT19937"), state=inner, has_gauss=scalar(0), gauss=scalar(0.0))
    return node("RandomStateNode", "numpy.random.mtrand.RandomState", content=state)


def _nested(depth):
    found = items()
    for _ in range(depth):
        found = items(found)
    return found


def npy(array):
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


class Evil:
    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return open, (self.path, "w")


def doubled(times):
    """A tuple of a tuple twice, and so on: hashing it takes two to the power of `times` steps."""
    inner = tuple_of(scalar("x"))
    for _ in range(times):
        inner = tuple_of(inner, {"__loader__": "CachedNode", "__id__": inner["__id__"]})
    return inner


def members(owned):
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,), }"
    head = b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header
    code = b"{'descr': __import__('os').system('touch " + str(owned).encode() + b"')}"
    evil = np.array([Evil(owned)], dtype=object)
    return {
        "0.npy": npy(np.arange(2.0)),
        "0.bin": b"abc",
        "1.npy": npy(evil),
        "2.npy": head + b"\0" * 80,
        "3.npy": pickle.dumps(Evil(owned)),
        "4.npy": head.replace(b"1000000000000", b"-100000000000"),
        "5.npy": b"\x93NUMPY\x01\x00" + struct.pack("<H", len(code)) + code,
        "6.npy": npy(np.array([0, 10**9, 1])),
        "8.npy": npy(np.zeros(624, dtype=np.uint32)),
    }


def zipped(parts, kind=zipfile.ZIP_STORED):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", kind) as archive:
        for name, data in parts:
            archive.writestr(name, data)
    return stream.getvalue()


def files(owned, good):
    """Name -> bytes of all files; `good`: the bytes of a file that loads."""
    parts = members(owned)
    found = {}
    for name, schema in schemas(owned).items():
        text = json.dumps(schema | {"tabsym_format": 1})
        found[name] = zipped([("schema.json", text), *parts.items()])
    plain = json.dumps(schemas(owned)["list-popen"])
    found["skops-popen"] = zipped([("schema.json", plain)])
    root = within(scalar(1)) | {"tabsym_format": 1}
    text = json.dumps(root)
    for name, version in (("new", 2), ("text", "1"), ("true", True), ("huge", 10**30), ("escape", "\n\x1b[31m\u202e")):
        found[f"format-{name}"] = zipped([("schema.json", json.dumps(root | {"tabsym_format": version}))])
    found |= {
        "member-outside": zipped([("schema.json", text), ("../../evil.py", "x")]),
        "member-absolute": zipped([("schema.json", text), ("/tmp/evil", "x")]),
        "member-module": zipped([("schema.json", text), ("sitecustomize.py", "x")]),
        "member-folder": zipped([("schema.json", text), ("1/", "")]),
        "member-twice": zipped([("schema.json", text), ("schema.json", text)]),
        "bomb": zipped([("schema.json", text), ("0.bin", b"\0" * 10_000_000)], zipfile.ZIP_DEFLATED),
        "bomb-schema": zipped([("schema.json", " " * 10_000_000 + text)], zipfile.ZIP_DEFLATED),
        "lzma": zipped([("schema.json", text)], zipfile.ZIP_LZMA),
        "key-twice": zipped([("schema.json", text[:-1] + ', "tabsym_format": 1}')]),
        "schema-list": zipped([("schema.json", "[1]")]),
        "schema-number": zipped([("schema.json", "1")]),
        "schema-deep": zipped([("schema.json", "[" * 200_000)]),
        "schema-bytes": zipped([("schema.json", b"\xff\xfe\x00")]),
        "schema-empty": zipped([("schema.json", "")]),
        "schema-missing": zipped([("other.json", text)]),
        "empty": b"",
        "text": b"import os\n",
        "pickle": pickle.dumps(Evil(owned)),
        "array": npy(np.arange(3)),
        "zip-empty": zipped([]),
    }
    size = len(good)
    found |= {f"cut-{share}": good[: size * share // 20] for share in range(1, 20)}
    found["cut-last"] = good[:-1]
    return found


def write(folder, good):
    """All files, in a folder; their paths."""
    folder = Path(folder)
    paths = []
    for name, data in files(folder / "owned", good).items():
        paths.append(folder / f"{name}.skops")
        paths[-1].write_bytes(data)
    (folder / "folder.skops").mkdir()
    return [*paths, folder / "folder.skops"]


def watch(folder):
    """Load each file where nothing may happen; a JSON line for each: the error, and what was seen."""
    from tabsym import load
    from tabsym.compare import load as load_winner

    for warm in ("empty", "format-new"):
        with contextlib.suppress(ValueError):
            load(Path(folder) / f"{warm}.skops")
    events, on = [], False
    harmless = {"zipfile", "encodings"}

    def hook(event, arguments):
        if not on:
            return
        writes = event == "open" and (arguments[1] or "r") not in ("r", "rb")
        acts = event.split(".")[0] in ("subprocess", "os", "shutil", "socket", "ctypes", "tempfile", "pickle", "exec")
        imports = event == "import" and arguments[0] not in sys.modules and arguments[0].split(".")[0] not in harmless
        if writes or imports or (acts and event not in ("os.scandir", "os.listdir")):
            events.append(f"{event} {str(arguments[:1])[:200]}")

    sys.addaudithook(hook)
    for path in sorted(Path(folder).glob("*.skops")):
        before, events[:] = set(sys.modules), []
        outcomes = []
        for read in (load, load_winner):
            on = True
            try:
                outcomes.append(["loaded", repr(type(read(path)))])
            except BaseException as error:
                outcomes.append([type(error).__name__, str(error)])
            on = False
        print(json.dumps([path.stem, outcomes, events, sorted(set(sys.modules) - before)]), flush=True)


if __name__ == "__main__":
    watch(sys.argv[1])
