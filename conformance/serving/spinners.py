"""Lets several CPU servers share few cores although some of their threads never sleep.

NIXL's UCX progress thread polls without pause, and vLLM pins the NIXL worker, compute threads
included, to the last core of its NUMA node (``nixl/base_worker.py``, vLLM 0.32.0). On two cores
P and D then fight for one of them, and a handshake or a 30 s block lease can run out. Nothing
of the connector is changed here: pinning is widened to all cores, and threads that are busy
while their server has nothing to do get the lowest priority, so they run when others wait.
"""

from __future__ import annotations

import os
import time

import psutil

SAMPLE_S = 0.5
# Of one core. An idle server's other threads stay below 2 %; two spinners on one core get 50 %.
BUSY_SHARE = 0.15
LOWEST_PRIORITY = 19


def calm(pids: list[int]) -> int:
    """Widen and lower the spinning threads below these idle processes; how many were found."""
    family = _family(pids)
    before = {process.pid: _thread_times(process) for process in family}
    time.sleep(SAMPLE_S)
    found = 0
    for process in family:
        for thread, spent in _thread_times(process).items():
            _widen(thread)
            busy = spent - before[process.pid].get(thread, spent) > BUSY_SHARE * SAMPLE_S
            # The main thread computes; it also spins, but only for a second after a request.
            if busy and thread != process.pid:
                found += _lower(thread)
    return found


def _family(pids: list[int]) -> list[psutil.Process]:
    found: list[psutil.Process] = []
    for pid in pids:
        try:
            process = psutil.Process(pid)
            found += [process, *process.children(recursive=True)]
        except psutil.NoSuchProcess:
            continue
    return found


def _thread_times(process: psutil.Process) -> dict[int, float]:
    try:
        return {t.id: t.user_time + t.system_time for t in process.threads()}
    except psutil.Error:
        return {}


def _widen(thread: int) -> None:
    try:
        os.sched_setaffinity(thread, range(os.cpu_count() or 1))
    except OSError:
        return


def _lower(thread: int) -> int:
    try:
        os.setpriority(os.PRIO_PROCESS, thread, LOWEST_PRIORITY)
    except OSError:
        return 0
    return 1
