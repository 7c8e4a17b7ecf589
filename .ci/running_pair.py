"""Starts a NIXL pair as an operator would have it, and asks the suite about it from outside.

Usage: python .ci/running_pair.py REPORT_FOLDER [VLLM_ROUTER]. Exits 1 with a line for each thing
that is not as it should be: `probe` within 15 seconds and right about the pair, about a decode
server without a connector, and, where the router's program is given, about the pair behind it; then
the checks that need no restart.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from conformance.options import RunOptions
from conformance.pair import Pair
from conformance.registry import plan
from conformance.runtime import Runtime
from conformance.serving.ports import PortRange

PROBE_LIMIT_S = 15.0
ROUTER_LIMIT_S = 90.0
CHECKS = ("transfer/*", "length/B+1", "token-ids/decide-the-prompt", "streaming/answer")


def main() -> int:
    """0 if everything was as it should be."""
    report, router = Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else None
    options = RunOptions.of(
        connectors=("nixl",),
        checks=("transfer/completion",),
        real_model="none",
        report=report / "started",
    )
    runtime = Runtime(options)
    try:
        pair = runtime.pairs(plan(options, runtime.engine.device)[0])[0]
        return _ask(pair, report, router)
    finally:
        runtime.close()


def _ask(pair: Pair, report: Path, router: str | None) -> int:
    p, d = pair.prefill.server.url, pair.decode.server.url
    wrong = _probe("the pair", ["--prefill-url", p, "--decode-url", d], 0)
    if router:
        with _routed(router, p, d) as url:
            where = ["--prefill-url", p, "--decode-url", d, "--router-url", url]
            wrong += _probe("the pair behind the router", where, 0)
    urls = ["--prefill-url", p, "--decode-url", d]
    checks = [part for check in CHECKS for part in ("--check", check)]
    command = [*_suite(), "run", "--connector", "nixl", *urls, *checks]
    code = subprocess.run([*command, "--report", str(report / "attached")], check=False).returncode
    wrong += [f"checks on the running pair: exit {code}, but should be 0"] if code else []
    # Last: P keeps what nobody fetches for half a minute, and its engine does not idle meanwhile.
    wrong += _probe(
        "the reference as decode", ["--prefill-url", p, "--decode-url", _other(pair)], 1
    )
    print("\n".join(wrong) or "running pair: as it should be")
    return bool(wrong)


def _probe(what: str, where: list[str], expected: int) -> list[str]:
    print(f"== probe: {what}", flush=True)
    began = time.monotonic()
    code = subprocess.run(
        [*_suite(), "probe", "--connector", "nixl", *where], check=False
    ).returncode
    took = time.monotonic() - began
    print(f"   {took:.1f} s", flush=True)
    wrong = [f"probe of {what}: exit {code}, but should be {expected}"] if code != expected else []
    if took > PROBE_LIMIT_S:
        wrong.append(f"probe of {what}: {took:.1f} s, but should take {PROBE_LIMIT_S:.0f} at most")
    return wrong


@contextmanager
def _routed(router: str, prefill: str, decode: str) -> Iterator[str]:
    """vllm-router before the pair, ready."""
    ports = PortRange(20000, 29999)
    port, metrics = ports.lease(), ports.lease()
    command = [router, "--vllm-pd-disaggregation", "--kv-connector", "nixl"]
    command += ["--prefill", prefill, "--decode", decode, "--policy", "round_robin"]
    command += ["--host", "127.0.0.1", "--port", str(port.port), "--disable-retries"]
    command += ["--prometheus-port", str(metrics.port), "--worker-startup-timeout-secs", "60"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port.port}"
    try:
        deadline = time.monotonic() + ROUTER_LIMIT_S
        while not _healthy(url):
            if process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(f"{' '.join(command)} is not ready")
            time.sleep(0.2)
        yield url
    finally:
        process.terminate()
        process.wait(20)
        port.release()
        metrics.release()


def _healthy(url: str) -> bool:
    try:
        return httpx.get(f"{url}/health", timeout=5).status_code == 200
    except httpx.HTTPError:
        return False


def _other(pair: Pair) -> str:
    return pair.oracle.clients[0].server.url


def _suite() -> list[str]:
    return [str(Path(sys.executable).parent / "kv-conformance")]


if __name__ == "__main__":
    sys.exit(main())
