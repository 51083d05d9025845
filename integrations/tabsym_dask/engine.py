"""The engine of a fit over workers: one actor each, which holds its parts and answers with their sums.

The sweeps are those of fits out of core, `DescentInParts` in `tabsym.solvers.newton.partitioned`, whose `Engine` this
is; what a worker computes of its rows in a sweep is `Shard`, in `tabsym.solvers.newton.partitioned`.

Actors form a tree: the client asks `FEW` of them, and each passes the question on to as many that are below it and
adds up their answers with its own. What the client sends and receives does not grow with the number of workers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from distributed import Actor, Client, Future, get_client
from numpy.typing import NDArray

from tabsym.categories import Categories
from tabsym.models.out_of_core.parts import InMemory, Reader, RowSample, Wanted
from tabsym.solvers.newton.partitioned import OneAfterTheOther, add_up

Floats = NDArray[np.float64]

FEW = 4
"""Workers that the client, or a worker, asks itself."""


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
        self._sample = RowSample(n_sampled, np.random.RandomState(list(seed)))
        self._reader = Reader(wanted, self._sample, InMemory())
        found = [self._reader.read(as_arrow(piece)) for piece in pieces if len(piece)]
        self.rows = OneAfterTheOther([part for part in [*found, self._reader.rest()] if part is not None])
        self._below: list[Any] = []

    def read(self) -> tuple[dict[str, Categories], Categories, Any, tuple[Any, Floats] | None, int]:
        """Categories by column, classes and their type; the sample with its keys; the number of parts."""
        reader, n_parts = self._reader, len(self.rows.parts)
        sample = self._sample.with_keys() if n_parts else None
        return reader.vocabularies, reader.classes, reader.class_type, sample, n_parts

    def renumber(self, of_column: dict[str, NDArray[np.int32]], of_class: Floats | None) -> None:
        """Codes by the numbers that all workers share."""
        for part in self.rows.parts:
            for name, numbers in of_column.items():
                part.codes[name] = numbers[part.codes[name]]
            if of_class is not None:
                part.renumber_classes(of_class)

    def link(self, below: Sequence[Any]) -> None:
        """The actors that are asked with this one."""
        self._below = list(below)

    def answer(self, how: str, what: str, arguments: tuple[Any, ...]) -> Any:
        """What the parts here and below answer; see `OneAfterTheOther`."""
        asked = [(actor, actor.answer(how, what, arguments)) for actor in self._below]  # who work meanwhile
        own = getattr(self.rows, how)(what, *arguments)
        return together(how, [own, *(heard(*one) for one in asked)])

    def answer_at(self, part: int, what: str, arguments: tuple[Any, ...]) -> Any:
        return self.rows.at(part, what, *arguments)


def together(how: str, found: Sequence[Any]) -> Any:
    """One answer from those of several, in this order."""
    if how == "every":
        return [one for several in found for one in several]
    return found[0] if len(found) == 1 else add_up(tuple(map(_own, one)) for one in found)


PATIENCE = 2.0
"""Seconds after which a worker looks whether the one that it asked is still there."""


def heard(actor: Any, asked: Any) -> Any:
    """The answer of an actor to another worker, which Dask would let wait for ever where the actor was lost."""
    while True:
        try:
            return asked.result(timeout=PATIENCE)
        except TimeoutError:
            if asked.done():
                raise
            client = get_client()
            if not client.who_has([Future(actor.key, client)]).get(actor.key):
                raise RuntimeError(LOST) from None


def blocks(actors: Sequence[Any]) -> list[Sequence[Any]]:
    """At most `FEW` blocks of neighbours, the first of which asks the others of its block."""
    ends = np.linspace(0, len(actors), FEW + 1).astype(int)
    return [actors[first:end] for first, end in pairwise(ends.tolist()) if first < end]


def link(actors: Sequence[Any]) -> list[Any]:
    """Link the actors as a tree; those that the client asks."""
    first = []
    for top, *others in blocks(actors):
        if others:
            top.link(link(others)).result()
        first.append(top)
    return first


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
        self.asked = answer_of(lambda: link(self.actors))

    def every(self, what: str, *arguments: Any) -> list[Any]:
        return list(self.ask("every", what, arguments))

    def total(self, what: str, *arguments: Any) -> Any:
        return self.ask("total", what, arguments)

    def at(self, part: int, what: str, *arguments: Any) -> Any:
        worker = int(np.searchsorted(self._ends, part, side="right"))
        first = int(self._ends[worker - 1]) if worker else 0
        return answer_of(lambda: self.actors[worker].answer_at(part - first, what, arguments).result())

    def ask(self, how: str, what: str, arguments: tuple[Any, ...]) -> Any:
        """The answer of all actors, which work at the same time."""
        return together(how, answers(self.asked, "answer", [(how, what, arguments)] * len(self.asked)))


def answers(actors: Sequence[Any], method: str, arguments: Iterable[tuple[Any, ...]]) -> list[Any]:
    """Those of the actors, which work at the same time, to a question of its own each."""

    def wait() -> list[Any]:
        asked = [getattr(actor, method)(*own) for actor, own in zip(actors, arguments, strict=True)]
        return [one.result() for one in asked]

    return answer_of(wait)


def answer_of(ask: Callable[[], Any]) -> Any:
    """What `ask` returns; a `RuntimeError` where a worker was lost, as a sum without its rows would be wrong."""
    try:
        return ask()
    except (RuntimeError, ValueError) as error:  # as the version of Dask has it
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


def position(client: Client, pieces: Sequence[Any]) -> dict[str, list[Any]]:
    """The futures of partitions by worker, neighbours together and in the order of the table.

    Where partitions lie depends on nothing but how many they and the workers are, so that a fit can be repeated;
    a partition that another worker holds is sent once. Where a worker is lost, Dask computes its partitions on others.
    """
    addresses = sorted(client.nthreads())[: len(pieces)]
    if not addresses:
        raise RuntimeError("The cluster has no workers yet; wait for one by client.wait_for_workers(1).")
    blocks = np.array_split(np.arange(len(pieces)), len(addresses))
    return {
        address: client.compute([pieces[at] for at in block], workers=[address], allow_other_workers=True)
        for address, block in zip(addresses, blocks, strict=True)
    }


def start(
    client: Client, wanted: Wanted, n_sampled: int, seed: int, held: dict[str, list[Any]]
) -> tuple[list[Any], list[Any]]:
    """Actors over the partitions of each worker, and what they read."""
    asked = [
        client.submit(
            WorkerRows, wanted, n_sampled, (seed, number), *own, actor=True, workers=[address],
            allow_other_workers=True, pure=False,
        )
        for number, (address, own) in enumerate(held.items())
    ]  # fmt: skip
    actors = [_bound(client, future) for future in asked]
    return actors, answers(actors, "read", [()] * len(actors))


def _bound(client: Client, future: Future) -> Any:
    """An actor that is asked through this client: one that Dask unpickles asks through the default one."""
    future.result()  # raises what coding raised
    addresses = client.who_has([future]).get(future.key)
    if not addresses:
        raise RuntimeError(LOST)
    with client.as_current():
        return Actor(WorkerRows, addresses[0], future.key)
