"""Contenders in the test's own process, for tests whose subject is neither the process nor the pictures."""

import os
import subprocess
import sys
import warnings
from contextlib import contextmanager

import pytest

from tabsym.compare import report, workers


class _HereAndNow:
    """A stand-in for `subprocess.Popen`: the worker has run when it is made, its events wait in the pipe."""

    pid, returncode = -1, 0

    def __init__(self, command, **options):
        *_, place, _parent, channel = command
        reader, writer = os.pipe()
        self.stdout = os.fdopen(reader, "rb")
        path = list(sys.path)
        try:
            with warnings.catch_warnings():
                workers.main(place, str(os.dup(int(channel))) if channel.isdecimal() else channel)
        finally:
            os.close(writer)
            sys.path[:] = path

    def poll(self):
        return self.returncode

    def wait(self, timeout=None):
        return self.returncode


class _Subprocess:
    """The module `subprocess`, but for `Popen`."""

    Popen = _HereAndNow

    def __getattr__(self, name):
        return getattr(subprocess, name)


@contextmanager
def contenders_in_process():
    """While open, `compare` runs contenders here; nothing can be killed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(workers, "CAN_FORK", False)
        patch.setattr(workers, "subprocess", _Subprocess())
        patch.setattr(workers, "kill_group", lambda process: None)
        with without_pictures():
            yield


@contextmanager
def without_pictures():
    """While open, `compare` draws its pictures, but does not write them as SVG, which is most of a report's time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(report, "svg", lambda figure: "data:image/svg+xml;base64,")
        yield
