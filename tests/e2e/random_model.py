"""Models of random weights in the layout of llama, of any size, written as GGUF files."""
import dataclasses
import random
import struct

HEAD_SIZE = 64
U32, F32, BOOL, STRING, ARRAY, I32 = 4, 6, 7, 8, 9, 5
TYPE_F32, TYPE_Q4_0 = 0, 2
ALIGNMENT = 32


@dataclasses.dataclass(frozen=True)
class Shapes:
    name: str
    hidden: int
    feed_forward: int
    vocabulary: int
    layers: int
    key_heads: int = 2

    @property
    def heads(self):
        return self.hidden // HEAD_SIZE


MOSTLY_VOCABULARY = Shapes("mostly vocabulary", hidden=640, feed_forward=640, vocabulary=262144, layers=18)  # 120 MB
MOSTLY_LAYERS = Shapes("mostly layers", hidden=1024, feed_forward=3072, vocabulary=1024, layers=12)  # 80 MB


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


def _metadata(shapes):
    tokens = ["<|end|>", *_alphabet(), "Ġt"]
    kinds = [3] + [1] * (len(tokens) - 1) + [5] * (shapes.vocabulary - len(tokens))
    tokens += [f"[{i}]" for i in range(len(tokens), shapes.vocabulary)]
    return [
        _field("general.architecture", STRING, "llama"),
        _field("general.name", STRING, shapes.name),
        _field("llama.block_count", U32, shapes.layers),
        _field("llama.context_length", U32, 2048),
        _field("llama.embedding_length", U32, shapes.hidden),
        _field("llama.feed_forward_length", U32, shapes.feed_forward),
        _field("llama.attention.head_count", U32, shapes.heads),
        _field("llama.attention.head_count_kv", U32, shapes.key_heads),
        _field("llama.rope.freq_base", F32, 10000),
        _field("llama.attention.layer_norm_rms_epsilon", F32, 1e-5),
        _field("llama.vocab_size", U32, shapes.vocabulary),
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


def _tensors(shapes):
    """Names with shapes, inputs first; embedding and output share a matrix."""
    hidden, feed_forward, keys = shapes.hidden, shapes.feed_forward, shapes.key_heads * HEAD_SIZE
    yield "token_embd.weight", (hidden, shapes.vocabulary)
    yield "output_norm.weight", (hidden,)
    for layer in range(shapes.layers):
        for name, shape in (("attn_norm", (hidden,)), ("attn_q", (hidden, hidden)), ("attn_k", (hidden, keys)),
                            ("attn_v", (hidden, keys)), ("attn_output", (hidden, hidden)), ("ffn_norm", (hidden,)),
                            ("ffn_gate", (hidden, feed_forward)), ("ffn_up", (hidden, feed_forward)),
                            ("ffn_down", (feed_forward, hidden))):
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


def write_random_model(path, shapes):
    """100 MB in a second or two; the same each time."""
    noise = random.Random(1)
    tensors, metadata = list(_tensors(shapes)), _metadata(shapes)
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
