"""Damaged folders: --resume refuses them in one sentence, or forgets what is damaged; the rest is as it was."""

import copy
import hashlib
import json
import os
import pickle
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from tabsym import OneHotEncoder
from tabsym.compare import compare
from tabsym.compare.machine import owned
from tabsym.compare.ranking import rank
from tabsym.compare.results import mend, prediction_path
from tabsym.compare.settings import begin, forget_changed, settings_of

pytestmark = pytest.mark.usefixtures("in_process")

DRAW = np.random.default_rng(0)
TABLE = pd.DataFrame({"a": DRAW.choice(list("uvw"), 60), "y": DRAW.choice(["n", "p"], 60)})
FOLDS = [(name, fold) for name in ("constant", "own") for fold in (0, 1)]
PARTS = ("scores", "observed", "predicted")
DELETED, TIMES = object(), ("fit_seconds", "peak_bytes")


def run(out, **options):
    own = make_pipeline(OneHotEncoder(), LogisticRegression())
    contenders = {"own": (own, {"logisticregression__C": [0.1, 1.0, 10.0]})}
    return compare(TABLE, "y", contenders=contenders, folds=2, tune=2, out=out, quiet=True, **options)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A finished comparison."""
    done = run(tmp_path_factory.mktemp("whole") / "out")
    assert not done.failures
    return done


@pytest.fixture
def folder(whole, tmp_path):
    (tmp_path / "outside").mkdir()
    np.save(tmp_path / "outside" / "precious.npy", np.full((30, 2), 0.5))
    shutil.copytree(whole.folder, tmp_path / "out")
    return tmp_path / "out"


def state(place):
    """All that is in a folder, for comparison."""
    return {str(p): hashlib.sha256(p.read_bytes()).hexdigest() for p in sorted(place.rglob("*")) if p.is_file()}


def body_of(folder):
    return json.loads((folder / "results.json").read_text())


def resume(whole, folder):
    """What `compare(..., resume=True)` does, where folds that are missing come from the whole folder.

    The folds that were run anew, and the notes.
    """
    config = whole._run_config
    with owned(folder):
        results = begin(folder, settings_of(config, "table"), True)
        said = mend(results, folder, config)
        said += forget_changed(results, list(whole._contenders.values()))
        anew = []
        for name, fold in FOLDS:
            if str(fold) not in results.entry(name, name)["folds"]:
                anew.append((name, fold))
                result = copy.deepcopy(body_of(whole.folder)["contenders"][name]["folds"][str(fold)])
                prediction = np.load(prediction_path(whole.folder, name, fold))
                results.add(name, results.contenders[name]["label"], fold, result, prediction, folder)
        results.save(folder)
        results.save(folder, rank(results.settings, results.contenders))
    return anew, said


def check(whole, folder, least=0):
    """Resume, and compare all with the whole folder; at least so many notes."""
    outside = state(folder.parent / "outside")
    anew, said = resume(whole, folder)
    assert state(folder.parent / "outside") == outside
    assert len(said) >= least
    assert all(note.isprintable() and len(note) < 400 and note.endswith(".") for note in said)
    want, got = body_of(whole.folder), body_of(folder)
    for name, fold in FOLDS:
        a, b = (body["contenders"][name]["folds"][str(fold)] for body in (want, got))
        assert [a[part] for part in PARTS] == [b[part] for part in PARTS]
        assert [a[part] for part in TIMES] == [b[part] for part in TIMES]
        paths = [prediction_path(place, name, fold) for place in (whole.folder, folder)]
        assert paths[0].read_bytes() == paths[1].read_bytes()
        assert not paths[1].is_symlink()
    keys = ("name", "label", "score", "difference", "scores", "totals", "tried")
    assert [[row[key] for key in keys] for row in got["ranking"]] == [
        [row[key] for key in keys] for row in want["ranking"]
    ]
    assert resume(whole, folder)[0] == []  # mended for good
    return anew


def refused(whole, folder, *words):
    """Resuming is refused in one sentence that names what it is about and says what to do."""
    before = state(folder.parent)
    with pytest.raises(ValueError) as error:
        resume(whole, folder)
    text = str(error.value)
    assert all(word in text for word in words), text
    assert text.endswith(".")
    assert text.isprintable()
    assert len(text) < 600
    assert "another folder" in text
    assert before.items() <= state(folder.parent).items()  # the lock alone may be new


# The text of results.json


@pytest.mark.parametrize("share", [0.0, 0.001, 0.1, 0.3, 0.5, 0.7, 0.9, 0.999])
@pytest.mark.slow
def test_a_truncated_file_is_refused(whole, folder, share):
    path = folder / "results.json"
    path.write_bytes(path.read_bytes()[: int(share * path.stat().st_size)])
    refused(whole, folder, "results.json", "is damaged", "remove the file")


TEXTS = {
    "text": b"hello", "null": b"null", "number": b"3", "list": b"[]", "text in quotes": b'"x"', "zeros": bytes(4000),
    "deep": b"[" * 200_000, "deep objects": b'{"settings":' * 200_000, "latin": b'{"settings": "\xe9"}',
    "huge number": b'{"format": 3, "settings": {}, "contenders": {"a": ' + b"9" * 5000 + b"}}",
    "no contenders": b'{"format": 3, "settings": {}}', "twice": b"{}{}", "bom": b"\xef\xbb\xbf{}",
    "settings a list": b'{"format": 3, "settings": [], "contenders": {}}',
    "contenders a list": b'{"format": 3, "settings": {}, "contenders": []}',
    "contenders null": b'{"format": 3, "settings": {}, "contenders": null}',
}  # fmt: skip


@pytest.mark.parametrize("name", TEXTS)
def test_what_is_no_results_is_refused(whole, folder, name):
    (folder / "results.json").write_bytes(TEXTS[name])
    refused(whole, folder, "results.json", "is damaged", "remove the file")


@pytest.mark.parametrize("version", [2, 4, "3", None, [], float("nan"), 10**400])
def test_another_format_is_refused(whole, folder, version):
    (folder / "results.json").write_text(json.dumps(body_of(folder) | {"format": version}))
    refused(whole, folder, "another version")


@pytest.mark.slow
def test_flipped_bits_of_results(whole, folder):
    """One bit in each of 80 stretches of the file: refused, or as the whole one in the end."""
    path = folder / "results.json"
    text = path.read_bytes()
    mended = 0
    for place in ((np.arange(80) + np.random.default_rng(1).random(80)) / 80 * len(text) * 8).astype(int):
        changed = bytearray(text)
        changed[place // 8] ^= 1 << (place % 8)
        path.write_bytes(changed)
        try:
            check(whole, folder)
            mended += 1
        except ValueError as error:
            assert "another folder" in str(error)
            assert str(error).endswith(".")
    assert 20 < mended < 80


# Settings


@pytest.mark.parametrize("value", [None, "x" * 10_000, float("nan"), 10**400, {"a": []}, "deep", DELETED])
@pytest.mark.parametrize("key", ["target", "folds", "tune", "data"])
def test_settings_of_another_comparison_are_refused(whole, folder, key, value):
    body = body_of(folder)
    if value is DELETED:
        del body["settings"][key]
    else:
        body["settings"][key] = nested(400) if value == "deep" else value
    (folder / "results.json").write_text(json.dumps(body))
    refused(whole, folder, "a comparison with other settings")


@pytest.mark.parametrize("value", [None, "damaged", 7, ["b"], {"b": []}])
def test_columns_of_other_names_are_refused(whole, folder, value):
    body = body_of(folder)
    body["settings"]["columns"] = value
    (folder / "results.json").write_text(json.dumps(body))
    refused(whole, folder, "a comparison with other settings")


@pytest.mark.parametrize("key", ["n_splits", "metrics", "larger_is_better", "levels", "summary", "notes"])
def test_settings_that_follow_from_others_are_written_anew(whole, folder, key):
    body = body_of(folder)
    body["settings"][key] = "damaged"
    (folder / "results.json").write_text(json.dumps(body))
    assert check(whole, folder) == []


# Contenders, folds, scores


def nested(depth):
    value = []
    for _ in range(depth):
        value = [value]
    return value


ODD = {
    "null": None, "text": "x", "true": True, "list": [], "object": {}, "negative": -1.5, "nan": float("nan"),
    "infinite": float("inf"), "huge": 10**400, "large": 1e308, "deep": nested(400), "half": "\ud800",
}  # fmt: skip
PLACES = {
    "contender": ["own"],
    "label": ["own", "label"],
    "folds": ["own", "folds"],
    "fold": ["own", "folds", "0"],
    "scores": ["own", "folds", "0", "scores"],
    "score": ["own", "folds", "0", "scores", "auc"],
    "other score": ["own", "folds", "0", "scores", "brier"],
    "observed": ["own", "folds", "0", "observed"],
    "predicted": ["own", "folds", "0", "predicted"],
    "total": ["own", "folds", "0", "predicted", 0],
    "made_by": ["own", "made_by"],
    "address": ["own", "address"],
}
HARMLESS = {("label", "text"), ("address", "null"), ("folds", "object")}  # a label is that of now; nothing was done
KEYS = (
    "fit_seconds", "fit_cpu_seconds", "predict_seconds", "predict_row_seconds", "one_row_seconds", "peak_bytes",
    "model_bytes", "unweighted", "tune_seconds", "tried", "failed", "params", "scores", "observed", "predicted",
)  # fmt: skip


def put(folder, place, value, without_digest):
    """results.json with another value at a place below the contenders."""
    body = body_of(folder)
    at = body["contenders"]
    for key in place[:-1]:
        at = at[key]
    if value is DELETED:
        del at[place[-1]]
    else:
        at[place[-1]] = value
    if without_digest:  # as earlier versions wrote it
        for entry in body["contenders"].values():
            for fold in entry["folds"].values() if isinstance(entry, dict) and isinstance(entry["folds"], dict) else []:
                if isinstance(fold, dict):
                    fold.pop("digest", None)
    (folder / "results.json").write_text(json.dumps(body))


def places_and_odd():
    """Every odd value where it is read as such; of a fold, whose digest no change leaves as it was, a few in turn."""
    in_folds = 0
    for place, way in PLACES.items():
        in_folds += "0" in way
        yield from ((place, odd) for odd in (list(ODD)[in_folds % 4 :: 4] if "0" in way else ODD))


@pytest.mark.parametrize(("place", "odd"), places_and_odd())
def test_odd_values_are_forgotten(whole, folder, place, odd):
    put(folder, PLACES[place], ODD[odd], False)
    anew = check(whole, folder, least=(place, odd) not in HARMLESS)
    assert set(anew) <= {("own", 0), ("own", 1)}
    if "0" in PLACES[place]:
        assert anew == [("own", 0)]


def odd_and_old():
    """Places and odd values; not those that fit."""
    places = [*(place for place in PLACES if "0" in PLACES[place]), "tried", "params", "unweighted"]
    fit = {("params", "object"), ("unweighted", "true"), ("tried", "large")}
    return [(place, odd) for place in places for odd in ODD if (place, odd) not in fit]


@pytest.mark.parametrize(("place", "odd"), odd_and_old()[::2])
def test_odd_values_are_forgotten_without_a_digest(whole, folder, place, odd):
    put(folder, PLACES.get(place, ["own", "folds", "0", place]), ODD[odd], True)
    assert check(whole, folder, least=1) == [("own", 0)]


@pytest.mark.parametrize("without_digest", [False, True])
@pytest.mark.parametrize("key", KEYS)
def test_missing_keys_of_a_fold(whole, folder, key, without_digest):
    put(folder, ["own", "folds", "0", key], DELETED, without_digest)
    assert check(whole, folder) == [("own", 0)]


def test_folds_of_earlier_versions_are_kept(whole, folder):
    put(folder, ["own", "label"], "another", True)
    assert check(whole, folder) == []


@pytest.mark.parametrize("fold", ["7", "-1", "00", "0.0", "", "x", "\u0660", "1" * 5000, "\n", "\ud800"])
def test_unknown_folds_are_forgotten(whole, folder, fold):
    put(folder, ["own", "folds", fold], body_of(folder)["contenders"]["own"]["folds"]["0"], False)
    check(whole, folder, least=1)
    assert set(body_of(folder)["contenders"]["own"]["folds"]) == {"0", "1"}


@pytest.mark.parametrize("name", ["ghost", "../../outside", "..", "", "a/b", "\x00", "\n", "x" * 300, "\ud800"])
@pytest.mark.parametrize("entry", ["own", 3])
def test_unkncustom_contenders_lead_nowhere(whole, folder, name, entry):
    body = body_of(folder)
    body["contenders"][name] = body["contenders"]["own"] if entry == "own" else entry
    (folder / "results.json").write_text(json.dumps(body))
    check(whole, folder, least=1)


@pytest.mark.parametrize("key", ["junk", "error"])
def test_other_keys_of_a_contender_are_passed_over(whole, folder, key):
    put(folder, ["own", key], nested(400), False)
    assert check(whole, folder) == []


def test_swapped_entries(whole, folder):
    body = body_of(folder)
    folds = body["contenders"]["own"]["folds"]
    folds["0"], folds["1"] = folds["1"], folds["0"]
    (folder / "results.json").write_text(json.dumps(body))
    assert check(whole, folder) == [("own", 0), ("own", 1)]


def test_a_contender_that_is_gone_is_run_anew(whole, folder):
    put(folder, ["own"], DELETED, False)
    assert resume(whole, folder)[0] == [("own", 0), ("own", 1)]


# Predictions


class Evil:
    def __reduce__(self):
        return os.mkdir, ("unpickled",)


def arrays(path):
    """Damaged predictions, by name."""
    values, data = np.load(path), path.read_bytes()
    cut = len(data) // 2
    return {
        "empty": b"", "header alone": data[:128], "cut": data[:cut], "short": data[:-1], "zeros": bytes(len(data)),
        "pickle": pickle.dumps(Evil()), "objects": np.array([Evil()] * len(values), dtype=object),
        "nan": values * np.nan, "one nan": np.where(np.arange(len(values))[:, None] == 3, np.nan, values),
        "complex": values.astype(complex), "text": values.astype(str), "truth": values > 0.5,
        "rows": values[:-1], "more rows": np.vstack([values, values]), "flat": values.ravel(),
        "one class": values[:, :1], "no dimension": np.float64(0.5), "cube": values[:, :, None],
        "sum": values * [2, 0.5], "large": values + 7, "half": values.astype(np.float16), "reversed": values[::-1],
        "times": values.astype("M8[s]"), "huge header": data[:10] + data[10:].replace(b"(30, 2)", b"(9**99)"),
        "giant": data.replace(b"(30, 2), }", b"(3000000000000, 2), }"),
    }  # fmt: skip


NAMES = (
    "empty", "header alone", "cut", "short", "zeros", "pickle", "objects", "nan", "one nan", "complex", "text",
    "truth", "rows", "more rows", "flat", "one class", "no dimension", "cube", "sum", "large", "half", "reversed",
    "times", "huge header", "giant",
)  # fmt: skip


@pytest.mark.parametrize("kind", NAMES)
def test_damaged_predictions_are_forgotten(whole, folder, kind, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    path = prediction_path(folder, "own", 0)
    what = arrays(path)[kind]
    path.write_bytes(what) if isinstance(what, bytes) else np.save(path, what, allow_pickle=True)
    assert check(whole, folder) == [("own", 0)]
    assert not Path("unpickled").exists()


@pytest.mark.slow
def test_flipped_bits_of_a_prediction(whole, folder):
    path = prediction_path(folder, "own", 0)
    data = path.read_bytes()
    start = data.index(b"\n") + 1
    places = [*np.random.default_rng(2).integers(8 * start, 8 * len(data), 30), 8 * start, 8 * len(data) - 1]
    for place in places:
        changed = bytearray(data)
        changed[place // 8] ^= 1 << (place % 8)
        path.write_bytes(changed)
        assert check(whole, folder) == [("own", 0)]


def test_removed_predictions(whole, folder):
    prediction_path(folder, "own", 1).unlink()
    assert check(whole, folder) == [("own", 1)]
    shutil.rmtree(folder / "predictions")
    assert check(whole, folder) == FOLDS


def test_swapped_predictions(whole, folder):
    a, b = (prediction_path(folder, "own", fold) for fold in (0, 1))
    a.rename(folder / "x"), b.rename(a), (folder / "x").rename(b)
    assert check(whole, folder) == [("own", 0), ("own", 1)]


@pytest.mark.parametrize("kind", ["link", "hard link", "dangling", "itself", "pipe"])
def test_predictions_elsewhere(whole, folder, kind):
    path = prediction_path(folder, "own", 0)
    path.unlink()
    precious = folder.parent / "outside" / "precious.npy"
    if kind == "link":
        path.symlink_to(precious)
    elif kind == "hard link":
        path.hardlink_to(precious)
    elif kind == "dangling":
        path.symlink_to(folder.parent / "outside" / "new.npy")
    elif kind == "itself":
        path.symlink_to(path)
    else:
        os.mkfifo(path)
        refused(whole, folder, "0.npy", "remove it")
        return
    assert check(whole, folder) == [("own", 0)]


# Other parts of the folder

FOLDERS = ["results.json", "results.csv", "results.csv.part", "results.json.part", "report.html"]
FOLDERS += ["predictions/own/0.npy", "predictions/own/0.npy.part"]


@pytest.mark.parametrize("name", FOLDERS)
def test_folders_in_place_of_files_are_refused(whole, folder, name):
    path = folder / name
    path.unlink(missing_ok=True)
    path.mkdir()
    (path / "precious").write_text("x")
    refused(whole, folder, path.name, "remove it")


@pytest.mark.parametrize("name", ["predictions", "predictions/own"])
@pytest.mark.parametrize("kind", ["file", "link", "dangling"])
@pytest.mark.parametrize("known", [True, False])
def test_folders_of_predictions_elsewhere_are_refused(whole, folder, name, kind, known):
    if not known:
        put(folder, ["own"], DELETED, False)
    path = folder / name
    shutil.rmtree(path)
    if kind == "file":
        path.write_text("x")
    else:
        path.symlink_to(folder.parent / ("outside" if kind == "link" else "nowhere"))
    refused(whole, folder, path.name, "remove it")


@pytest.mark.parametrize("name", ["results.csv", "results.csv.part", "results.json.part", "predictions/own/0.npy.part"])
def test_links_are_replaced_and_not_followed(whole, folder, name):
    path = folder / name
    path.unlink(missing_ok=True)
    path.symlink_to(folder.parent / "outside" / "precious.npy")
    assert check(whole, folder) == []
    assert name.startswith("predictions") or not path.is_symlink()


def test_a_report_elsewhere_is_refused(whole, folder):
    (folder / "report.html").unlink()
    (folder / "report.html").symlink_to(folder.parent / "outside" / "precious.npy")
    refused(whole, folder, "report.html", "remove it")


@pytest.mark.parametrize("kind", ["folder", "link", "text", "dangling"])
def test_odd_locks(whole, folder, kind):
    lock, outside = folder / ".lock", folder.parent / "outside"
    lock.unlink()
    if kind == "text":
        lock.write_text("12345 of another machine")
        assert check(whole, folder) == []
        return
    lock.mkdir() if kind == "folder" else lock.symlink_to(outside / ("precious.npy" if kind == "link" else "new"))
    refused(whole, folder, ".lock", "remove it")


# Whole runs


def test_a_whole_run_mends(whole, folder, capsys):
    put(folder, ["own", "folds", "0", "scores", "auc"], "x", False)
    prediction_path(folder, "constant", 1).write_bytes(b"")
    shutil.rmtree(folder / "predictions" / "own")
    again = run(folder, resume=True)
    pd.testing.assert_frame_equal(whole.ranking[["name", "label", "score"]], again.ranking[["name", "label", "score"]])
    assert not again.failures
    for name, fold in FOLDS:
        paths = [prediction_path(place, name, fold) for place in (whole.folder, folder)]
        assert paths[0].read_bytes() == paths[1].read_bytes()


def test_a_whole_run_refuses(folder):
    (folder / "results.json").write_text("{")
    with pytest.raises(ValueError, match=r"results\.json is damaged"):
        run(folder, resume=True)
