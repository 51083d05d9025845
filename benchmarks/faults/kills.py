"""Random kills of `python -m tabsym compare`, each followed by --resume: is what is there in the end the same?

A table of 400 rows, four cheap contenders, three folds. First an uninterrupted run, the reference. Then trials: a run
in a new folder is killed at a random moment within half of the reference's time (SIGKILL, SIGTERM or SIGINT, to the
comparison's own process alone, as a machine out of memory, a scheduler and Ctrl-C do), gone on with by --resume and
killed again, up to `--in-a-row` times, and then gone on with to the end, until there were `--kills` kills. Checked:

* after every kill: the status (143 after SIGTERM, 130 after SIGINT, as a shell says them); no worker alive 3 s later;
  after SIGTERM and SIGINT no temporary folder left of that process; no traceback;
* at the end of every trial: status 0; scores, order and predictions as in the reference, bit for bit; no temporary
  folder, no file half written.

    python benchmarks/faults/kills.py [--kills 40] [--in-a-row 5] [--seed 0]
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import psutil

SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
CONTENDERS = "constant,onehot-linear,wide-additive,wide-pairs"
PATIENCE = 3.0  # seconds that a worker may outlive its comparison


def make_table(path: Path) -> None:
    """400 rows, two symbolic columns, a number, two classes."""
    draw = np.random.default_rng(0)
    a, b, n = draw.choice(list("uvwxyz"), 400), draw.choice(list("uvw"), 400), draw.normal(size=400).round(3)
    margin = (a == "u") * 1.5 - (b == "w") + n
    y = np.where(draw.random(400) < 1 / (1 + np.exp(-margin)), "p", "n")
    pd.DataFrame({"a": a, "b": b, "n": n, "y": y}).to_csv(path, index=False)


class Trials:
    """The comparisons of one working folder, with temporary files of their own."""

    def __init__(self, work: Path) -> None:
        self.table, self.temporary = work / "table.csv", work / "tmp"
        self.temporary.mkdir()
        make_table(self.table)
        self.wrong: list[str] = []
        self.said: Counter[str] = Counter()

    def start(self, out: Path) -> tuple[subprocess.Popen[bytes], Path]:
        """A comparison into `out`, or the rest of it; and where its errors go."""
        errors = self.temporary / "errors.txt"
        command = [sys.executable, "-m", "tabsym", "compare", str(self.table), "--target", "y", "--folds", "3"]
        command += ["--contenders", CONTENDERS, "--out", str(out), "--resume"]
        with errors.open("wb") as file:
            process = subprocess.Popen(
                command, stdout=subprocess.DEVNULL, stderr=file, env=os.environ | {"TMPDIR": str(self.temporary)}
            )
        return process, errors

    def finish(self, out: Path) -> float:
        """Run to the end; seconds."""
        begin = time.perf_counter()
        process, errors = self.start(out)
        if process.wait() != 0:
            self.note(f"status {process.returncode} of a run to the end: {errors.read_text()[-500:]}")
        if self.folders():
            self.note(f"temporary folders after a run to the end: {self.folders()}")
        return time.perf_counter() - begin

    def kill(self, out: Path, after: float, by: signal.Signals) -> bool:
        """Start and kill; whether it was alive still."""
        process, errors = self.start(out)
        try:
            process.wait(after)
            if process.returncode:
                self.note(f"status {process.returncode} without a kill: {errors.read_text()[-500:]}")
            return False
        except subprocess.TimeoutExpired:
            process.send_signal(by)
        begin = time.perf_counter()
        status = process.wait()
        took = time.perf_counter() - begin
        what = f"{by.name} after {after:.2f} s"
        shell = 128 - status if status < 0 else status
        if shell != 128 + by:
            self.note(f"{what}: status {status}")
        self.said[f"{by.name}: status {status}"] += 1
        if took > PATIENCE:
            self.note(f"{what}: it took {took:.1f} s to end")
        if by != signal.SIGKILL and self.folders(process.pid):
            self.note(f"{what}: temporary folders {self.folders(process.pid)}")
        text = errors.read_text()
        if "Traceback" in text:
            early = by == signal.SIGINT and status == -signal.SIGINT
            self.said["traceback of Ctrl-C while Python was importing"] += early
            if not early:
                self.note(f"{what}: {text[-2000:]}")
        begin = time.perf_counter()
        while self.workers() and time.perf_counter() - begin < PATIENCE:
            time.sleep(0.05)
        if self.workers():
            self.note(f"{what}: workers alive {PATIENCE:g} s later: {self.workers()}")
        return True

    def workers(self) -> list[int]:
        """Processes that work for these comparisons."""
        out = []
        for process in psutil.process_iter():
            try:
                if process.status() != psutil.STATUS_ZOMBIE and str(self.temporary) in " ".join(process.cmdline()):
                    out.append(process.pid)
            except psutil.Error:
                continue
        return out

    def folders(self, pid: int | None = None) -> list[str]:
        """Temporary folders that are there, of all or of one process."""
        return sorted(path.name for path in self.temporary.glob("tabsym-*" if pid is None else f"tabsym-{pid}-*"))

    def note(self, what: str) -> None:
        print(f"WRONG {what}", flush=True)
        self.wrong.append(what)


def outcome(out: Path) -> dict[str, Any]:
    """What must be the same: scores, totals, order, predictions, and the summary, but for what it says of times."""
    body = json.loads((out / "results.json").read_text(encoding="utf-8"))
    folds = {
        f"{name} {fold}": [result[part] for part in ("scores", "observed", "predicted")]
        for name, entry in sorted(body["contenders"].items())
        for fold, result in sorted(entry["folds"].items())
    }
    files = {str(p.relative_to(out)): p.read_bytes() for p in sorted((out / "predictions").rglob("*.npy"))}
    ranking = [[row["name"], row["score"], row["difference"]] for row in body["ranking"]]
    said = body["settings"]["summary"]
    said = [one for one in said if not one.startswith("The machine was busy") and "processor time" not in one]
    return {"folds": folds, "files": files, "ranking": ranking, "summary": said,
            "parts": [p.name for p in out.rglob("*.part")]}  # fmt: skip


def main() -> int:
    """All trials; 1 where something was wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=40)
    parser.add_argument("--in-a-row", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # what is started in a shell's background ignores it
    draw = np.random.default_rng(args.seed)
    with tempfile.TemporaryDirectory(prefix="kills-") as name:
        trials = Trials(Path(name))
        seconds = trials.finish(Path(name) / "reference")
        reference = outcome(Path(name) / "reference")
        assert len(reference["folds"]) == len(reference["files"]) == 12
        print(f"uninterrupted: {seconds:.1f} s", flush=True)
        kills = n_trials = same = 0
        while kills < args.kills:
            n_trials += 1
            out = Path(name) / f"trial{n_trials}"
            for _ in range(min(args.in_a_row, args.kills - kills)):
                by = SIGNALS[draw.integers(len(SIGNALS))]
                after = float(draw.uniform(0, seconds / 2))
                if not trials.kill(out, after, by):
                    break
                kills += 1
                print(f"{kills}: {by.name} after {after:.2f} s", flush=True)
            trials.finish(out)
            got = outcome(out)
            differing = [part for part in reference if got[part] != reference[part]]
            same += not differing
            if differing:
                trials.note(f"trial {n_trials}: {', '.join(differing)} differ from the uninterrupted run's")
    print(f"{kills} kills in {n_trials} trials; {same} of {n_trials} ended as the uninterrupted run, bit for bit")
    for what, times in sorted(trials.said.items()):
        print(f"{what}: {times}")
    print(f"wrong: {len(trials.wrong)}")
    return int(bool(trials.wrong))


if __name__ == "__main__":
    sys.exit(main())
