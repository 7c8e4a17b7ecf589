"""Accelerators: read from the driver's listing, shared between the servers of a deployment."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.errors import NotHere
from conformance.report import Gpu
from conformance.serving.devices import detect_gpus, parse_nvidia, parse_rocm, place

GIB = 2**30
ROCM = """
device,VRAM Total Memory (B),VRAM Total Used Memory (B),Card Series,Card Model,GFX Version
card0,206141652992,297451520,AMD Instinct MI300X OAM,0x74a1,gfx942
card1,206141652992,297451520,AMD Instinct MI300X OAM,0x74a1,gfx942
"""


def gpus(count: int) -> list[Gpu]:
    return [Gpu(index=i + 4, name="GPU", memory_bytes=80 * GIB) for i in range(count)]


def share(args: list[str]) -> float:
    option, value = args
    assert option == "--gpu-memory-utilization"
    return float(value)


def test_nvidia_listing() -> None:
    listing = "0, NVIDIA H200, 143771 MiB\n1, NVIDIA A100-SXM4-80GB, 81920 MiB\n\n"
    assert parse_nvidia(listing) == [
        Gpu(index=0, name="NVIDIA H200", memory_bytes=143771 * 2**20),
        Gpu(index=1, name="NVIDIA A100-SXM4-80GB", memory_bytes=80 * GIB),
    ]


def test_rocm_listing() -> None:
    name, memory = "AMD Instinct MI300X OAM", 206141652992
    assert parse_rocm(ROCM) == [
        Gpu(index=0, name=name, memory_bytes=memory),
        Gpu(index=1, name=name, memory_bytes=memory),
    ]


def test_rocm_listing_with_the_memory_last() -> None:
    listing = "device,Card series,VRAM Total Memory (B)\ncard3,Radeon,17163091968\n"
    assert parse_rocm(listing) == [Gpu(index=3, name="Radeon", memory_bytes=17163091968)]


def test_a_listing_without_gpus_is_empty() -> None:
    assert parse_nvidia("") == parse_nvidia("\n") == []
    assert parse_rocm("") == parse_rocm("device,Card Series\n") == []


@pytest.mark.parametrize("device", ["cpu", "cuda", "rocm"])
def test_no_driver_tool_means_no_gpus(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, device: str
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert detect_gpus(device) == []


@pytest.mark.parametrize(
    ("device", "tool", "listing"),
    [("cuda", "nvidia-smi", "2, NVIDIA L4, 23034 MiB"), ("rocm", "rocm-smi", ROCM)],
)
def test_the_drivers_own_tool_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, device: str, tool: str, listing: str
) -> None:
    script = tmp_path / tool
    script.write_text(f"#!/bin/sh\necho '{listing}'\n")
    script.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert detect_gpus(device) == (parse_nvidia if device == "cuda" else parse_rocm)(listing) != []
    script.write_text("#!/bin/sh\nexit 9\n")
    assert detect_gpus(device) == []


@pytest.mark.parametrize(("cores", "threads"), [(1, "1"), (2, "1"), (8, "2"), (64, "21")])
def test_cpu_servers_divide_the_cores(cores: int, threads: str) -> None:
    places = place("cpu", [], [1, 1, 1], cores)
    assert [spot.env["OMP_NUM_THREADS"] for spot in places] == [threads] * 3
    assert all(spot.args == [] for spot in places)


def test_cpu_servers_are_given_no_gpu() -> None:
    for spot in place("cpu", gpus(2), [1, 1, 1], 2):
        assert not {"CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"} & set(spot.env)


@pytest.mark.parametrize(
    ("device", "variable"), [("cuda", "CUDA_VISIBLE_DEVICES"), ("rocm", "HIP_VISIBLE_DEVICES")]
)
@pytest.mark.parametrize(("count", "chosen"), [(1, "444"), (2, "454"), (3, "456"), (4, "456")])
def test_servers_are_spread_over_the_gpus(
    device: str, variable: str, count: int, chosen: str
) -> None:
    places = place(device, gpus(count), [1, 1, 1], 16)
    assert [spot.env for spot in places] == [{variable: index} for index in chosen]


@pytest.mark.parametrize("count", [1, 2, 3, 4])
def test_no_gpu_is_promised_to_more_than_it_has(count: int) -> None:
    used: dict[str, float] = {}
    for spot in place("cuda", gpus(count), [1, 1, 1], 16):
        index = spot.env["CUDA_VISIBLE_DEVICES"]
        used[index] = used.get(index, 0.0) + share(spot.args)
    assert all(0.2 < total <= 0.9 for total in used.values())


def test_a_gpu_of_its_own_is_used_in_full_and_a_shared_one_is_not() -> None:
    own = {share(spot.args) for spot in place("cuda", gpus(4), [1, 1, 1], 16)}
    shared = {share(spot.args) for spot in place("cuda", gpus(1), [1, 1, 1], 16)}
    assert own == {0.85}
    assert shared == {0.25}


def test_without_a_listing_the_engine_decides() -> None:
    places = place("cuda", [], [1, 1, 1], 16)
    assert [(spot.env, spot.args) for spot in places] == [({}, [])] * 3


def test_a_server_of_two_ranks_gets_two_gpus() -> None:
    places = place("cuda", gpus(4), [2, 1, 1], 16)
    assert [spot.env["CUDA_VISIBLE_DEVICES"] for spot in places] == ["4,5", "6", "7"]
    assert {share(spot.args) for spot in places} == {0.85}


def test_two_ranks_on_two_gpus_share_them_with_the_others() -> None:
    places = place("cuda", gpus(2), [2, 1, 1], 16)
    assert [spot.env["CUDA_VISIBLE_DEVICES"] for spot in places] == ["4,5", "4", "5"]
    assert all(share(spot.args) * 2 < 1 for spot in places)


def test_five_servers_fit_on_one_gpu() -> None:
    assert all(share(spot.args) * 5 < 1 for spot in place("cuda", gpus(1), [1] * 5, 16))


def test_more_ranks_than_gpus_cannot_be_tried() -> None:
    with pytest.raises(NotHere, match="one server needs 2 GPUs, and 1 can be used here"):
        place("cuda", gpus(1), [2, 1, 1], 16)
