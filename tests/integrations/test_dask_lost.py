"""Workers in processes of their own, one of which is killed: apart, as Dask's actors take a process's last client."""

import os
import signal

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from distributed import Client, LocalCluster
from tabsym_dask import DaskWideClassifier, engine, estimators

from tabsym import WideClassifier

RNG = np.random.default_rng(0)
TABLE = pd.DataFrame({"store": RNG.choice(list("abcdefgh"), 2_000), "week": RNG.choice(list("uvw"), 2_000)})
TABLE["two"] = np.where(RNG.uniform(size=2_000) < 0.3 + 0.4 * TABLE["store"].isin(["a", "b"]), "yes", "no")


@pytest.mark.slow
def test_a_killed_worker_is_replaced_before_the_fit_and_said_during_it(monkeypatch):
    """Its partitions are coded on another before; a worker that waits for one that is gone answers, too."""
    monkeypatch.setattr(engine, "FEW", 1)
    frame = dd.from_pandas(TABLE, npartitions=4)
    options = {"interactions": None, "alpha": 1e-2, "tol": 1e-8, "max_iter": 3000}
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):

        def kill(worker):
            os.kill(sorted(client.run(os.getpid).items())[worker][1], signal.SIGKILL)

        start, ask, calls = estimators.start, engine.OnWorkers.ask, []
        monkeypatch.setattr(estimators, "start", lambda *given: kill(1) or start(*given))
        model = DaskWideClassifier(client, **options).fit(frame, "two")
        local = WideClassifier(**options).fit(TABLE, "two")
        np.testing.assert_allclose(
            model.predict_proba(TABLE[["store", "week"]]), local.predict_proba(TABLE[["store", "week"]]), rtol=1e-8
        )
        monkeypatch.setattr(estimators, "start", start)
        client.wait_for_workers(2)

        def killing(own, *given):
            calls.append(given)
            if len(calls) == 15:
                kill(1)
            return ask(own, *given)

        monkeypatch.setattr(engine.OnWorkers, "ask", killing)
        with pytest.raises(RuntimeError, match="A worker was lost during the fit"):
            DaskWideClassifier(client, **options).fit(frame, "two")
    assert len(calls) >= 15
