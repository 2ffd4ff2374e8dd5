"""Requests that are not as they should be, made from a seed."""
import json

PATHS = ("/v1/chat/completions", "/v1/completions", "/tokenize", "/detokenize")
ODD_VALUES = (None, True, False, 0, -1, 1, 1.5, -0.0, 1e308, 2**31, 2**63, -2**63, 2**64, 10**30, "", "a", "\x00", "\ud800", "💧" * 50,
              [], {}, [[]], [None], [{}], {"": None}, [1, "a"], {"type": "object"}, "auto", "x" * 5000, [0] * 300)
# As JSON that Python would not write.
ODD_TEXTS = ("NaN", "Infinity", "-Infinity", "1e400", "-1e400", "01", "+1", ".5", "1.", "0x10", "'a'", '"\t"', '"\\x"', '"\\ud800"',
             '"\\u12"', "nul", "[1,]", "{\"a\":1,}", "{a:1}", "//", "", "[" * 3000 + "]" * 3000, '{"a":' * 3000 + "1" + "}" * 3000,
             "[" * 100000, "9" * 5000, '"\xff"')

SCHEMAS = (
    {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]}, {"$ref": "#"}, {"$ref": "#/$defs/none"},
    {"$defs": {"a": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"}, {"enum": []}, {"type": "none"}, {"pattern": "("},
    {"type": "string", "pattern": "(a{1000}){1000}"}, {"type": "string", "minLength": 2**40}, {"minItems": 10**9, "type": "array"},
    {"allOf": [{"type": "string"}, {"type": "integer"}]}, {"anyOf": []}, {"not": {}}, True, False, 5, [], {"type": []},
    {"type": "integer", "minimum": 1e300}, {"type": "number", "multipleOf": 0}, {"const": {"a": [1, {"b": None}]}})
REGEXES = ("(", "a{1,", "[", "(?=a)", "(a*)*", "\\p{L}+", "(a{1000}){1000}", "a" * 20000, "[^\\x00-\\x7f]{1,9999}", "", "\\", "(?P<x>a)\\1")
GRAMMARS = ("", "start: ", "root ::= root", "start: start", "start: /(/", 'root ::= "a" | ', "start: a\na: b\nb: a", "?" * 1000)


def valid_body(random, path):
    if path == "/detokenize":
        return {"tokens": [random.randrange(90) for _ in range(random.randrange(20))]}
    if path == "/tokenize":
        return {"prompt": "a b c"}
    body = {"max_tokens": random.randrange(1, 8), "temperature": random.choice((0, 1)), "stream": random.random() < 0.5}
    if path == "/v1/completions":
        return {**body, "prompt": random.choice(("a", [1, 2, 3], ["a", "b"], [[5, 6], [7]]))}
    return {**body, "messages": [{"role": "user", "content": "a"}]}


FIELDS = ("model messages prompt suffix echo best_of n stop stream stream_options max_tokens max_completion_tokens min_tokens temperature "
          "top_p top_k min_p typical_p seed logprobs top_logprobs logit_bias presence_penalty frequency_penalty repetition_penalty "
          "ignore_eos stop_token_ids include_stop_str_in_output skip_special_tokens add_special_tokens add_generation_prompt "
          "continue_final_message chat_template chat_template_kwargs truncate_prompt_tokens prompt_logprobs allowed_token_ids bad_words "
          "structured_outputs guided_json guided_regex response_format tools tool_choice parallel_tool_calls functions function_call "
          "reasoning_effort priority request_id cache_salt return_token_ids documents user metadata store tokens content "
          "return_token_strs logits_processors prompt_embeds images mm_processor_kwargs spaces_between_special_tokens").split()


def odd_structure(random):
    """Fields that are odd one level further down."""
    odd = random.choice(ODD_VALUES)
    schema, regex, grammar = random.choice(SCHEMAS), random.choice(REGEXES), random.choice(GRAMMARS)
    function = {"name": random.choice(("f", "", "f" * 200, "a b", None, 5)), "parameters": random.choice((schema, odd)),
                "description": random.choice(("", odd))}
    return random.choice((
        {"response_format": {"type": random.choice(("json_schema", "json_object", "text", "none", odd)),
                             "json_schema": random.choice(({"name": "x", "schema": schema}, {"schema": odd}, odd))}},
        {"structured_outputs": {"json": random.choice((schema, json.dumps(schema)))}}, {"structured_outputs": {"regex": regex}},
        {"structured_outputs": {"grammar": grammar}}, {"structured_outputs": {"choice": random.choice((odd, [odd], [""], ["a"] * 5000))}},
        {"structured_outputs": {random.choice(("json", "regex", "choice", "grammar", "structural_tag", "none")): odd}},
        {"structured_outputs": {"json": {}, "regex": "a"}},
        {"tools": [{"type": random.choice(("function", odd)), "function": random.choice((function, odd))}],
         "tool_choice": random.choice(("auto", "required", "none", {"type": "function", "function": {"name": "f"}}, odd))},
        {"tools": [{"type": "function", "function": {"name": "f"}}] * random.choice((0, 2, 300)), "tool_choice": "required"},
        {"functions": random.choice(([function], odd)), "function_call": random.choice(("auto", {"name": "f"}, odd))},
        {"messages": [{"role": random.choice(("user", "assistant", "tool", "system", "none", odd)),
                       "content": random.choice(("a", [{"type": "text", "text": odd}], [{"type": "image_url", "image_url": odd}], odd)),
                       "tool_calls": random.choice((odd, [{"id": "1", "type": "function", "function": {"name": "f", "arguments": odd}}]))}]},
        {"logit_bias": random.choice(({"5": odd}, {"a": 1}, {str(2**70): 1}, {str(i): 1 for i in range(5000)}))},
        {"stop": random.choice(([odd], ["a"] * 1000, [""], "x" * 100000))}, {"n": random.choice((128, 2**31 - 1, 2**62)), "best_of": odd},
        {"prompt": random.choice(([odd], [[odd]], [1, "a"], [[1], "a"], [-1], [2**40], [[]], ["a"] * 3000, [[1]] * 3000))},
        {"stream_options": {random.choice(("include_usage", "continuous_usage_stats", "include_obfuscation")): odd}, "stream": True},
        {"chat_template_kwargs": {"a": odd, "messages": odd}}, {"logprobs": True, "top_logprobs": odd}, {"bad_words": ["", odd]},
        {"temperature": 1e-30, "top_p": 1e-30, "top_k": 2**31 - 1, "min_p": 1, "repetition_penalty": 1e-30}))


def odd_body(random, path):
    """Text of a body for this path; most are JSON."""
    body = valid_body(random, path)
    for _ in range(random.randrange(1, 4)):
        if random.random() < 0.5:
            body[random.choice(FIELDS)] = random.choice(ODD_VALUES)
        else:
            body.update(odd_structure(random))
    text = json.dumps(body)
    kind = random.random()
    if kind < 0.15:
        return json.dumps(valid_body(random, path))[:-1] + f', "{random.choice(FIELDS)}": {random.choice(ODD_TEXTS)}}}'
    if kind < 0.2:
        return random.choice(ODD_TEXTS)
    if kind < 0.25:
        return text[:random.randrange(len(text))]
    return text


def spoil(random, data):
    """The bytes with some of them changed, lost, doubled or added."""
    data = bytearray(data)
    for _ in range(random.randrange(1, 6)):
        at = random.randrange(len(data) + 1)
        kind = random.randrange(4)
        if kind == 0 and at < len(data):
            data[at] = random.choice((0, 10, 13, 32, 34, 58, 127, 128, 255, random.randrange(256)))
        elif kind == 1:
            del data[at:at + random.randrange(1, 20)]
        elif kind == 2:
            data[at:at] = data[at:at + random.randrange(1, 60)]
        else:
            data[at:at] = random.choice((b"\r\n", b"\n", b"\r", b"\0", b" ", b"\r\n\r\n", b"Content-Length: 3\r\n",
                                         b"Transfer-Encoding: chunked\r\n", b"\xff\xfe", b"a" * 9000))
    return bytes(data)


def odd_request(random):
    """Bytes for a connection, in one or several parts, some of them proper requests with an odd body."""
    path = random.choice(PATHS)
    body = odd_body(random, path).encode("utf-8", "surrogatepass" if random.random() < 0.5 else "replace")
    kind = random.random()
    length = f"Content-Length: {len(body)}\r\n"
    if kind < 0.08:
        length = random.choice(("Content-Length: -1\r\n", "Content-Length: 99999999999999999999\r\n", "Content-Length: 5, 6\r\n",
                                length * 2, length + "Transfer-Encoding: chunked\r\n", "Content-Length: +3\r\n", "Content-Length: \r\n",
                                "Content-Length : 3\r\n", "Transfer-Encoding: gzip\r\n", "Transfer-Encoding: chunked, chunked\r\n",
                                "Transfer-Encoding:\x0bchunked\r\n", "Content-Length: 0x3\r\n", ""))
    elif kind < 0.16:
        length = "Transfer-Encoding: chunked\r\n"
        body = random.choice((f"{len(body):x}\r\n".encode() + body + b"\r\n0\r\n\r\n", b"zz\r\n", b"ffffffffffffffff\r\n" + body, b"-1\r\n",
                              b"5;" + b"x" * 9000 + b"\r\n", b"1\r\na\r\n" * 200 + b"0\r\n\r\n", b"0\r\nContent-Length: 9\r\n\r\n"))
    head = random.choice(("", "", "", "Expect: 100-continue\r\n", "Connection: upgrade\r\nUpgrade: h2c\r\n", "X: " + "y" * 20000 + "\r\n",
                          "".join(f"X{i}: y\r\n" for i in range(300)), "Host: y\r\n", ": x\r\n", "a b: c\r\n", " folded\r\n",
                          "Content-Type: text/plain\r\n", "Content-Encoding: gzip\r\n", "Origin: http://x\r\n", "Connection: close\r\n"))
    method = random.choice(("POST",) * 12 + ("GET", "HEAD", "OPTIONS", "PUT", "DELETE", "TRACE", "CONNECT", "PRI", "post", "P\tST"))
    target = random.choice((path,) * 12 + ("/", "*", "http://x/v1/models", "/%00", "/%", "/%zz", "//", "/../metrics", path + "?a=b", "x" * 9000,
                                          "/v1/models/" + "%2e" * 100, "/metrics", "/page/../x"))
    version = random.choice(("HTTP/1.1",) * 15 + ("HTTP/1.0", "HTTP/2.0", "HTTP/0.9", "HTTP/1.9", "HTPP/1.1", ""))
    data = f"{method} {target} {version}\r\nHost: x\r\nContent-Type: application/json\r\n{length}{head}\r\n".encode() + body
    if random.random() < 0.2:
        data = spoil(random, data)
    if random.random() < 0.1:
        data = data * random.randrange(2, 5)  # one after the other without waiting
    return data
