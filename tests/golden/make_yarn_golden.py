#!/usr/bin/env python3
"""Writes tests/data/models/llama-yarn: the weights of `llama` under YaRN scaling, with a golden of its own.

The forward pass below is plain numpy in float64, written from the papers (arXiv:2302.13971, arXiv:2309.00071); before it
writes anything it must reproduce the golden of `llama` itself, which comes from `transformers`. Needs numpy.

  make_yarn_golden.py tests/data/models
"""
import json
import math
import pathlib
import shutil
import struct
import sys

import numpy as np

YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16, "beta_fast": 4.0, "beta_slow": 1.0}
DTYPES = {"F32": np.float32, "I64": np.int64}


def read_safetensors(path):
    raw = path.read_bytes()
    (size,) = struct.unpack("<Q", raw[:8])
    header = json.loads(raw[8 : 8 + size])
    data = raw[8 + size :]
    return {
        name: np.frombuffer(data[t["data_offsets"][0] : t["data_offsets"][1]], DTYPES[t["dtype"]]).reshape(t["shape"])
        for name, t in header.items()
        if name != "__metadata__"
    }


def write_safetensors(path, tensors):
    header, data = {}, b""
    for name, t in tensors.items():
        dtype = {v: k for k, v in DTYPES.items()}[t.dtype.type]
        header[name] = {"dtype": dtype, "shape": list(t.shape), "data_offsets": [len(data), len(data) + t.nbytes]}
        data += t.tobytes()
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def frequencies(config, dim):
    base = config["rope_theta"]
    plain = base ** (-np.arange(0, dim, 2) / dim)
    yarn = config.get("rope_scaling")
    if not yarn:
        return plain, 1.0
    factor, original = yarn["factor"], yarn["original_max_position_embeddings"]

    def pair_of_turns(turns):
        return dim * math.log(original / (turns * 2 * math.pi)) / (2 * math.log(base))

    low = max(math.floor(pair_of_turns(yarn["beta_fast"])), 0)
    high = min(math.ceil(pair_of_turns(yarn["beta_slow"])), dim - 1)
    ramp = np.clip((np.arange(dim // 2) - low) / max(high - low, 0.001), 0, 1)
    return plain / factor * ramp + plain * (1 - ramp), 0.1 * math.log(factor) + 1


def forward(config, w, ids):
    heads, kv_heads, hidden = config["num_attention_heads"], config["num_key_value_heads"], config["hidden_size"]
    dim = config.get("head_dim", hidden // heads)
    inv_freq, scale = frequencies(config, dim)
    angles = np.outer(np.arange(len(ids)), inv_freq)
    cos, sin = np.cos(angles) * scale, np.sin(angles) * scale

    def norm(x, weight):
        return x / np.sqrt((x * x).mean(-1, keepdims=True) + config["rms_norm_eps"]) * weight

    def rotate(x):  # [tokens, heads, dim]
        a, b = x[..., : dim // 2], x[..., dim // 2 :]
        c, s = cos[:, None], sin[:, None]
        return np.concatenate([a * c - b * s, b * c + a * s], -1)

    x = w["model.embed_tokens.weight"][ids]
    for i in range(config["num_hidden_layers"]):
        p = f"model.layers.{i}."
        h = norm(x, w[p + "input_layernorm.weight"])
        q = rotate((h @ w[p + "self_attn.q_proj.weight"].T).reshape(-1, heads, dim))
        k = rotate((h @ w[p + "self_attn.k_proj.weight"].T).reshape(-1, kv_heads, dim))
        v = (h @ w[p + "self_attn.v_proj.weight"].T).reshape(-1, kv_heads, dim)
        k, v = (np.repeat(t, heads // kv_heads, 1) for t in (k, v))
        scores = np.einsum("qhd,khd->hqk", q, k) / math.sqrt(dim)
        scores[:, np.triu(np.ones((len(ids), len(ids)), bool), 1)] = -np.inf
        p_attn = np.exp(scores - scores.max(-1, keepdims=True))
        p_attn /= p_attn.sum(-1, keepdims=True)
        mixed = np.einsum("hqk,khd->qhd", p_attn, v).reshape(len(ids), -1)
        x = x + mixed @ w[p + "self_attn.o_proj.weight"].T
        h = norm(x, w[p + "post_attention_layernorm.weight"])
        gate = h @ w[p + "mlp.gate_proj.weight"].T
        x = x + (gate / (1 + np.exp(-gate)) * (h @ w[p + "mlp.up_proj.weight"].T)) @ w[p + "mlp.down_proj.weight"].T
    return norm(x, w["model.norm.weight"]) @ w["lm_head.weight"].T


def main():
    models = pathlib.Path(sys.argv[1])
    source = models / "llama"
    config = json.loads((source / "config.json").read_text())
    weights = {name: t.astype(np.float64) for name, t in read_safetensors(source / "model.safetensors").items()}
    golden = read_safetensors(source / "golden.safetensors")
    for i in range(3):
        off = np.abs(forward(config, weights, golden[f"prompt{i}"]) - golden[f"logits{i}"]).max()
        if off > 1e-3:
            sys.exit(f"prompt{i}: {off} from the golden of llama: this forward pass is wrong")

    config["rope_scaling"] = YARN
    out, about = {}, []
    for i in range(3):
        ids = list(golden[f"prompt{i}"])
        logits = forward(config, weights, ids)
        greedy, margins = [], []
        for _ in range(32):
            last = forward(config, weights, ids + greedy)[-1]
            second, best = np.sort(last)[-2:]
            greedy.append(int(last.argmax()))
            margins.append(best - second)
        out |= {
            f"prompt{i}": np.array(ids),
            f"logits{i}": logits.astype(np.float32),
            f"greedy{i}": np.array(greedy),
            f"greedy_margin{i}": np.array(margins, np.float32),
        }
        about.append({"prompt": f"prompt{i}", "logits_std": round(float(logits.std()), 5), "min_margin": min(margins)})
    target = models / "llama-yarn"
    target.mkdir(exist_ok=True)
    for name in ("model.safetensors", "tokenizer.json", "tokenizer_config.json", "generation_config.json"):
        shutil.copy(source / name, target / name)
    (target / "config.json").write_text(json.dumps(config, indent=1) + "\n")
    write_safetensors(target / "golden.safetensors", out)
    base = json.loads((source / "golden.json").read_text())
    keep = {k: base[k] for k in ("architecture", "weights_dtype", "tolerances", "observed_noise")}
    keep |= {"name": "llama-yarn", "exercises": "yarn rope scaling", "prompts": about,
             "compute": "float64, tests/golden/make_yarn_golden.py",
             "remarks": "observed_noise is that of llama, whose weights these are"}
    (target / "golden.json").write_text(json.dumps(keep, indent=1) + "\n")
    print(f"{target}: smallest margin {min(a['min_margin'] for a in about):.4f}")


if __name__ == "__main__":
    main()
