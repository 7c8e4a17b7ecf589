"""Accelerators: what there is, and how the servers of one deployment share it."""

from __future__ import annotations

import csv
import itertools
import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass

from conformance.errors import NotHere
from conformance.report import Gpu

# With all servers of a deployment on one GPU: three of them, and room for CUDA graphs.
SHARE_OF_ONE_GPU = 0.25
SHARE_OF_OWN_GPU = 0.85
_VISIBLE = {"cuda": "CUDA_VISIBLE_DEVICES", "rocm": "HIP_VISIBLE_DEVICES"}


@dataclass(frozen=True)
class Placement:
    """Where one server runs: its environment and arguments for that."""

    env: dict[str, str]
    args: list[str]


def place(device: str, gpus: list[Gpu], ranks: Sequence[int], cores: int) -> list[Placement]:
    """One placement per server, in the order of starting; ``ranks``: how many GPUs each takes.

    Each rank gets a GPU of its own where there are enough, else they go round-robin and share
    memory. On a CPU the cores are divided, one at least. Raises :class:`NotHere` for a server
    that needs more GPUs than there are.
    """
    if device not in _VISIBLE:
        return [_on_cpu(cores, sum(ranks))] * len(ranks)
    if not gpus:
        return [Placement({}, [])] * len(ranks)
    if max(ranks) > len(gpus):
        raise NotHere(f"one server needs {max(ranks)} GPUs, and {len(gpus)} can be used here")
    share = SHARE_OF_OWN_GPU
    if len(gpus) < sum(ranks):
        share = min(SHARE_OF_ONE_GPU * len(gpus), 0.45, SHARE_OF_OWN_GPU * len(gpus) / sum(ranks))
    numbers = itertools.cycle(str(gpu.index) for gpu in gpus)
    return [
        Placement(
            {_VISIBLE[device]: ",".join(itertools.islice(numbers, own))},
            ["--gpu-memory-utilization", f"{share:.2f}"],
        )
        for own in ranks
    ]


def _on_cpu(cores: int, servers: int) -> Placement:
    """Settings that let several CPU servers live on few cores (vLLM 0.32.0).

    Without TORCHDYNAMO_DISABLE the first request compiles small operators with g++, two
    minutes on two cores; eager results are the same for P, D and the reference.
    VLLM_ENABLE_V1_MULTIPROCESSING=0 lets the engine core run the model itself, with a process
    fewer per server. With a worker process, wake-ups of its shared-memory queue were lost when
    cores were contended, at 5 s each (``shm_broadcast.py``, SHM_READER_RECHECK_INTERVAL_MS).
    """
    return Placement(
        {
            "VLLM_CPU_KVCACHE_SPACE": "1",
            "VLLM_CPU_OMP_THREADS_BIND": "nobind",
            "TORCHDYNAMO_DISABLE": "1",
            "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
            "OMP_NUM_THREADS": str(max(1, cores // max(servers, 1))),
        },
        [],
    )


def detect_gpus(device: str) -> list[Gpu]:
    """The GPUs this process may use, as the driver's own tool lists them; empty without one.

    A list that the user already narrowed (``CUDA_VISIBLE_DEVICES=2,3``) is kept to.
    """
    if device == "cuda":
        command = ["nvidia-smi", "--query-gpu=index,name,memory.total", "--format=csv,noheader"]
    elif device == "rocm":
        command = ["rocm-smi", "--showproductname", "--showmeminfo", "vram", "--csv"]
    else:
        return []
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return []
    found = parse_nvidia(done.stdout) if device == "cuda" else parse_rocm(done.stdout)
    visible = os.environ.get(_VISIBLE[device], "")
    chosen = [int(part) for part in visible.split(",") if part.strip().isdigit()]
    return [gpu for gpu in found if not chosen or gpu.index in chosen]


def parse_nvidia(listing: str) -> list[Gpu]:
    """From ``0, NVIDIA H200, 143771 MiB`` lines; memory is 0 where the driver says ``[N/A]``."""
    gpus = []
    for line in filter(None, map(str.strip, listing.splitlines())):
        index, rest = line.split(",", 1)
        name, memory = (part.strip() for part in rest.rsplit(",", 1))
        amount = memory.split()[0]
        mebibytes = int(amount) if amount.isdigit() else 0
        gpus.append(Gpu(index=int(index), name=name, memory_bytes=mebibytes << 20))
    return gpus


def parse_rocm(listing: str) -> list[Gpu]:
    """From ``rocm-smi --csv``: a header line, then ``card0,<bytes>,…,<name>,…`` lines."""
    rows = [row for row in csv.reader(listing.splitlines()) if row]
    if not rows:
        return []
    header = [column.strip().lower() for column in rows[0]]
    memory = next((i for i, c in enumerate(header) if "total memory" in c), None)
    name = next((i for i, c in enumerate(header) if "series" in c or "model" in c), 0)
    return [
        Gpu(
            index=int(row[0].removeprefix("card")),
            name=row[name].strip(),
            memory_bytes=int(row[memory]) if memory is not None else 0,
        )
        for row in rows[1:]
        if row[0].startswith("card")
    ]
