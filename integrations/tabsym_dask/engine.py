"""The engine of a fit over workers: one actor each, which holds its parts and answers with their sums."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from distributed import Client
from numpy.typing import NDArray

from tabsym.categories import Categories
from tabsym.models.coded_batches import Reader, Sample, Wanted
from tabsym.models.parts import InMemory
from tabsym.solvers.newton.in_parts import OneAfterTheOther, add_up

Floats = NDArray[np.float64]


class WorkerRows:
    """The rows of a worker, coded: categories by numbers of its own until `renumber`.

    Parameters
    ----------
    wanted : Wanted
    n_sampled : int
        Rows of its sample.
    seed : sequence of int
    pieces : sequence of frames
    """

    def __init__(self, wanted: Wanted, n_sampled: int, seed: Sequence[int], *pieces: Any) -> None:
        self._sample = Sample(n_sampled, np.random.RandomState(list(seed)))
        self._reader = Reader(wanted, self._sample, InMemory())
        found = [self._reader.read(as_arrow(piece)) for piece in pieces if len(piece)]
        self.rows = OneAfterTheOther([part for part in [*found, self._reader.rest()] if part is not None])

    def read(self) -> tuple[dict[str, Categories], Categories, Any, tuple[Any, Floats] | None, int]:
        """Categories by column, classes and their type; the sample with its keys; the number of parts."""
        reader, n_parts = self._reader, len(self.rows.parts)
        sample = self._sample.with_keys() if n_parts else None
        return reader.alphabets, reader.classes, reader.class_type, sample, n_parts

    def renumber(self, of_column: dict[str, NDArray[np.int32]], of_class: Floats | None) -> None:
        """Codes by the numbers that all workers share."""
        for part in self.rows.parts:
            for name, numbers in of_column.items():
                part.codes[name] = numbers[part.codes[name]]
            if of_class is not None:
                part.renumber_classes(of_class)

    def answer(self, how: str, what: str, arguments: tuple[Any, ...]) -> Any:
        """What the parts here answer; see `OneAfterTheOther`."""
        return getattr(self.rows, how)(what, *arguments)

    def answer_at(self, part: int, what: str, arguments: tuple[Any, ...]) -> Any:
        return self.rows.at(part, what, *arguments)


class OnWorkers:
    """An `Engine` over actors: each question goes to all workers at once, and each answers with one sum.

    Parameters
    ----------
    actors : sequence of actors of WorkerRows
    n_parts : sequence of int
        Of each.
    """

    def __init__(self, actors: Sequence[Any], n_parts: Sequence[int]) -> None:
        self.actors, self._ends = list(actors), np.cumsum(n_parts)

    def every(self, what: str, *arguments: Any) -> list[Any]:
        return [one for found in self.ask("answer", "every", what, arguments) for one in found]

    def total(self, what: str, *arguments: Any) -> Any:
        if len(self.actors) == 1:
            return self.ask("answer", "total", what, arguments)[0]
        return add_up(tuple(map(_own, found)) for found in self.ask("answer", "total", what, arguments))

    def at(self, part: int, what: str, *arguments: Any) -> Any:
        worker = int(np.searchsorted(self._ends, part, side="right"))
        first = int(self._ends[worker - 1]) if worker else 0
        return answer_of(lambda: self.actors[worker].answer_at(part - first, what, arguments).result())

    def ask(self, method: str, *arguments: Any) -> list[Any]:
        """The answers of all actors, which work at the same time."""

        def wait() -> list[Any]:
            asked = [getattr(actor, method)(*arguments) for actor in self.actors]
            return [one.result() for one in asked]

        return answer_of(wait)


def answer_of(ask: Any) -> Any:
    """What `ask` returns; a `RuntimeError` where a worker was lost, as a sum without its rows would be wrong."""
    try:
        return ask()
    except ValueError as error:
        if "Worker holding Actor was lost" in str(error):
            raise RuntimeError(LOST) from error
        raise
    except (OSError, TimeoutError) as error:  # connections that were closed, in Dask's words
        raise RuntimeError(LOST) from error


LOST = (
    "A worker was lost during the fit, and its rows with it; the fit ended without a result, as sums over the others "
    "would be wrong. Fit again on the workers that are left, with more memory for each if that was the cause."
)


def _own(found: Any) -> Any:
    """An array that may be added to: what comes over the wire is locked, and what an actor here holds is its own."""
    return np.array(found) if isinstance(found, np.ndarray) else found


def as_arrow(piece: Any) -> Any:
    """A partition as an Arrow table."""
    return pa.Table.from_pandas(pd.DataFrame(piece), preserve_index=False)


def place(client: Client, pieces: Sequence[Any]) -> dict[str, list[Any]]:
    """The futures of partitions by worker, neighbours together and in the order of the table.

    Where partitions lie depends on nothing but how many they and the workers are, so that a fit can be repeated;
    a partition that another worker holds is sent once.
    """
    addresses = sorted(client.nthreads())[: len(pieces)]
    if not addresses:
        raise RuntimeError("The cluster has no workers yet; wait for one by client.wait_for_workers(1).")
    blocks = np.array_split(np.arange(len(pieces)), len(addresses))
    return {
        address: client.compute([pieces[at] for at in block], workers=[address], allow_other_workers=False)
        for address, block in zip(addresses, blocks, strict=True)
    }


def start(
    client: Client, wanted: Wanted, n_sampled: int, seed: int, held: dict[str, list[Any]]
) -> tuple[list[Any], list[Any]]:
    """Actors over the partitions of each worker, and what they read."""
    asked = [
        client.submit(
            WorkerRows, wanted, n_sampled, (seed, number), *own, actor=True, workers=[address],
            allow_other_workers=False, pure=False,
        )
        for number, (address, own) in enumerate(held.items())
    ]  # fmt: skip
    actors = [future.result() for future in asked]
    return actors, [actor.read() for actor in actors]
