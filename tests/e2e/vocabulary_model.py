"""A model that is mostly vocabulary: random weights in the layout of llama, written as a GGUF file."""
import random
import struct

HIDDEN, FEED_FORWARD, VOCABULARY, LAYERS, HEADS, KEY_HEADS, HEAD_SIZE = 640, 640, 262144, 18, 10, 2, 64
U32, F32, BOOL, STRING, ARRAY, I32 = 4, 6, 7, 8, 9, 5
TYPE_F32, TYPE_Q4_0 = 0, 2
ALIGNMENT = 32


def _text(value):
    raw = value.encode()
    return struct.pack("<Q", len(raw)) + raw


def _field(key, kind, value):
    head = _text(key) + struct.pack("<I", kind)
    if kind == STRING:
        return head + _text(value)
    return head + struct.pack({U32: "<I", F32: "<f", BOOL: "<?"}[kind], value)


def _array(key, kind, items):
    packed = b"".join(map(_text, items)) if kind == STRING else struct.pack(f"<{len(items)}i", *items)
    return _text(key) + struct.pack("<IIQ", ARRAY, kind, len(items)) + packed


def _alphabet():
    """How byte-level BPE writes the 256 bytes."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = iter(range(256, 512))
    return [chr(byte if byte in plain else next(others)) for byte in range(256)]


def _metadata():
    tokens = ["<|end|>", *_alphabet(), "Ġt"]
    kinds = [3] + [1] * (len(tokens) - 1) + [5] * (VOCABULARY - len(tokens))
    tokens += [f"[{i}]" for i in range(len(tokens), VOCABULARY)]
    return [
        _field("general.architecture", STRING, "llama"),
        _field("general.name", STRING, "mostly vocabulary"),
        _field("llama.block_count", U32, LAYERS),
        _field("llama.context_length", U32, 2048),
        _field("llama.embedding_length", U32, HIDDEN),
        _field("llama.feed_forward_length", U32, FEED_FORWARD),
        _field("llama.attention.head_count", U32, HEADS),
        _field("llama.attention.head_count_kv", U32, KEY_HEADS),
        _field("llama.rope.freq_base", F32, 10000),
        _field("llama.attention.layer_norm_rms_epsilon", F32, 1e-5),
        _field("llama.vocab_size", U32, VOCABULARY),
        _field("llama.rope.dimension_count", U32, HEAD_SIZE),
        _field("tokenizer.ggml.model", STRING, "gpt2"),
        _field("tokenizer.ggml.pre", STRING, "gpt-2"),
        _array("tokenizer.ggml.tokens", STRING, tokens),
        _array("tokenizer.ggml.token_type", I32, kinds),
        _array("tokenizer.ggml.merges", STRING, ["Ġ t"]),
        _field("tokenizer.ggml.bos_token_id", U32, 0),
        _field("tokenizer.ggml.eos_token_id", U32, 0),
        _field("tokenizer.ggml.add_bos_token", BOOL, False),
    ]


def _tensors():
    """Names with shapes, inputs first; embedding and output share a matrix."""
    keys = KEY_HEADS * HEAD_SIZE
    yield "token_embd.weight", (HIDDEN, VOCABULARY)
    yield "output_norm.weight", (HIDDEN,)
    for layer in range(LAYERS):
        for name, shape in (("attn_norm", (HIDDEN,)), ("attn_q", (HIDDEN, HIDDEN)), ("attn_k", (HIDDEN, keys)),
                            ("attn_v", (HIDDEN, keys)), ("attn_output", (HIDDEN, HIDDEN)), ("ffn_norm", (HIDDEN,)),
                            ("ffn_gate", (HIDDEN, FEED_FORWARD)), ("ffn_up", (HIDDEN, FEED_FORWARD)),
                            ("ffn_down", (FEED_FORWARD, HIDDEN))):
            yield f"blk.{layer}.{name}.weight", shape


def _size(shape):
    return 4 * shape[0] if len(shape) == 1 else shape[0] * shape[1] // 32 * 18


def _weights(noise, shape):
    """Norms of ones; matrices in Q4_0: blocks of a scale in f16 and 32 random numbers of 4 bits."""
    if len(shape) == 1:
        return struct.pack("<f", 1) * shape[0]
    raw = bytearray(noise.randbytes(_size(shape)))
    scale = struct.pack("<e", 0.01)
    raw[0::18] = scale[:1] * (len(raw) // 18)
    raw[1::18] = scale[1:] * (len(raw) // 18)
    return raw


def write_vocabulary_model(path):
    """120 MB, in a second or two; the same each time."""
    noise = random.Random(1)
    tensors, metadata = list(_tensors()), _metadata()
    infos, offset = [], 0
    for name, shape in tensors:
        infos.append(_text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape,
                                               TYPE_F32 if len(shape) == 1 else TYPE_Q4_0, offset))
        offset += -(-_size(shape) // ALIGNMENT) * ALIGNMENT
    with open(path, "wb") as out:
        out.write(b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(metadata)))
        for part in (*metadata, *infos):
            out.write(part)
        out.write(bytes(-out.tell() % ALIGNMENT))
        for _, shape in tensors:
            out.write(_weights(noise, shape))
            out.write(bytes(-out.tell() % ALIGNMENT))
