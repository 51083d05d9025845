"""Processes of contenders: started, forked where that is safe, waited for and killed.

A new process takes seconds to import the libraries. On Linux it is therefore a fork of one that has imported them, so
that each contender still has a process of its own that begins in the same state.
"""

from __future__ import annotations

import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import IO

from tabsym.compare.job import Channel, Process, Tail
from tabsym.compare.machine import PREFIX

CAN_FORK = sys.platform == "linux"  # macOS's own libraries do not survive a fork, and Windows knows none

# It ends with its parent from its first moment on, as the libraries take seconds to import.
_PROGRAM = f"""
import os, shutil, signal, sys, threading, time

def end_with(parent, workplace):
    while os.getppid() == parent:
        time.sleep(0.2)
    if os.path.basename(workplace).startswith({PREFIX!r}):
        shutil.rmtree(workplace, ignore_errors=True)
    if hasattr(os, "killpg") and os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(1)

def watch(parent, workplace):
    threading.Thread(target=end_with, args=(parent, workplace), daemon=True).start()

watch(int(sys.argv[2]), os.path.dirname(sys.argv[1]))
from tabsym.compare import worker
if len(sys.argv) > 4:
    from tabsym.compare.workers import fork_when_asked
    sys.argv[2:] = fork_when_asked(int(sys.argv[4]))
    watch(int(sys.argv[2]), "")  # where it alone has ended, the comparison goes on
worker.main(sys.argv[1], sys.argv[3])
"""


class Workers:
    """Starts one process after another for the jobs in a folder.

    Parameters
    ----------
    place : path
        Where each job's files are.
    environment : dict
        Of the processes.
    """

    def __init__(self, place: Path, environment: dict[str, str]) -> None:
        self._place, self._environment = place, environment
        self._server: subprocess.Popen[bytes] | None = None

    def start(self, channel: Channel) -> Process:
        """A process that runs the job in the folder and sends events to `channel`."""
        if not CAN_FORK:
            return self._popen([channel.name], channel.descriptors)
        if self._server is None or self._server.poll() is not None:  # a contender can end it
            self.close()
            self._connection, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            with theirs:
                self._server = self._popen(["", str(theirs.fileno())], [theirs.fileno()])
            self._printed = Tail(self._server.stdout)
        try:
            return Forked(self._connection, channel)
        except OSError as error:
            raise OSError(
                f"no process could be started: {last_words(self._server.wait(), self._printed.text())}"
            ) from error

    def _popen(self, arguments: list[str], descriptors: tuple[int, ...] | list[int]) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, str(self._place), str(os.getpid()), *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            pass_fds=descriptors,
            start_new_session=True,
            env=self._environment,
        )

    def stop(self) -> None:
        """Kill the process that is forked, from whatever thread; `start` then fails."""
        if self._server is not None:
            self._server.kill()

    def close(self) -> None:
        """End the process that is forked, if there is one."""
        if self._server is not None:
            self._server.kill()
            self._server.wait()
            self._connection.close()
            self._server = None


class Forked:
    """A process that the one at the other end of a connection has forked; its parent waits for it."""

    def __init__(self, connection: socket.socket, channel: Channel) -> None:
        self._connection = connection
        self.returncode: int | None = None
        reader, writer = os.pipe()
        self.stdout: IO[bytes] | None = os.fdopen(reader, "rb")
        try:
            socket.send_fds(connection, [b"start"], [writer, *channel.descriptors])
        finally:
            os.close(writer)
        self.pid = self._receive()

    def _receive(self) -> int:
        message = self._connection.recv(64)
        if not message:
            raise ConnectionResetError("The process that forks has ended.")
        return int(json.loads(message))

    def poll(self) -> int | None:
        """The status; None while it runs."""
        if self.returncode is None and select.select([self._connection], [], [], 0)[0]:
            self.wait()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """The status, when it has ended.

        Raises
        ------
        subprocess.TimeoutExpired
            It has not ended after `timeout` seconds.
        """
        if self.returncode is None:
            if not select.select([self._connection], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired("worker", timeout or 0.0)
            try:
                self.returncode = self._receive()
            except OSError:  # its parent was killed, and it ends with it
                self.returncode = -signal.SIGKILL
        return self.returncode


def fork_when_asked(descriptor: int) -> list[str]:
    """Fork as often as the comparison asks for it; in each fork, the arguments of the worker."""
    connection = socket.socket(fileno=descriptor)
    gc.freeze()  # so that memory stays shared
    child = 0
    while True:
        message, descriptors, *_ = socket.recv_fds(connection, 64, 2)
        if child:
            os.waitpid(child, 0)  # only now: until then its number is no other process's
        if not message:
            sys.exit()
        parent = os.getpid()
        child = os.fork()
        if child == 0:
            break
        for number in descriptors:
            os.close(number)
        os.setpgid(child, child)  # before its number is known, so that it can be killed with what it starts
        connection.send(json.dumps(child).encode())
        ended = os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
        assert ended is not None
        status = ended.si_status if ended.si_code == os.CLD_EXITED else -ended.si_status
        with suppress(OSError):  # the comparison has ended
            connection.send(json.dumps(status).encode())
    connection.close()
    os.setpgid(0, 0)
    printed, events = descriptors
    for number in (1, 2):
        os.dup2(printed, number)
    os.close(printed)
    return [str(parent), str(events)]


def kill_group(process: Process) -> None:
    """Kill a worker and the processes that it started."""
    if hasattr(os, "killpg"):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    elif isinstance(process, subprocess.Popen) and process.poll() is None:
        process.kill()


def last_words(status: int, errors: str) -> str:
    """Why a process ended that had more to do: the signal that killed it, or its last line."""
    if status < 0:
        try:
            name = signal.Signals(-status).name
        except ValueError:
            name = f"signal {-status}"
        hint = ", which often means that the machine ran out of memory" if name == "SIGKILL" else ""
        return f"the process was killed by {name}{hint},"
    lines = [
        line for line in errors.strip().splitlines() if "RuntimeWarning" not in line and "<frozen runpy>" not in line
    ]
    return f"the process ended with status {status} ({lines[-1].strip() if lines else 'no message'})"
