#include "openai/sampling_fields.h"

#include <charconv>
#include <limits>

#include "base/cat.h"

namespace headrace::openai {
namespace {

constexpr int32_t kMaxInt = std::numeric_limits<int32_t>::max();

void read_number(const Fields& body, std::string_view name, float& target) {
  if (const auto value = body.number(name)) target = static_cast<float>(*value);
}

void read_flag(const Fields& body, std::string_view name, bool& target) {
  if (const auto value = body.boolean(name)) target = *value;
}

/// {"50256": -100, ...}: token ids as names, as JSON has no other.
void read_logit_bias(const Fields& body, const RequestLimits& limits, SamplingParams& params) {
  const Json* biases = body.object("logit_bias");
  if (biases == nullptr) return;
  if (biases->size() > static_cast<size_t>(limits.max_logit_biases)) {
    body.refuse("logit_bias", cat("at most ", limits.max_logit_biases, " tokens"));
  }
  for (const auto& [name, bias] : biases->items()) {
    int32_t token = 0;
    const auto [end, status] = std::from_chars(name.data(), name.data() + name.size(), token);
    const bool is_id = status == std::errc() && end == name.data() + name.size() && token >= 0;
    if (!is_id || !bias.is_number())
      body.refuse("logit_bias", "token ids as names, numbers from -100 to 100 as values");
    params.logit_bias[token] = bias.get<float>();
  }
}

void read_stops(const Fields& body, const RequestLimits& limits, SamplingParams& params) {
  params.stop = body.strings("stop");
  params.stop_token_ids = body.token_ids("stop_token_ids");
  if (params.stop.size() > static_cast<size_t>(limits.max_stops)) {
    body.refuse("stop", cat("at most ", limits.max_stops, " texts"));
  }
  if (params.stop_token_ids.size() > static_cast<size_t>(limits.max_stops)) {
    body.refuse("stop_token_ids", cat("at most ", limits.max_stops, " tokens"));
  }
  for (const std::string& stop : params.stop) {
    if (stop.empty() || stop.size() > limits.max_stop_bytes) {
      body.refuse("stop", cat("texts of 1 to ", limits.max_stop_bytes, " bytes"));
    }
  }
}

}  // namespace

SamplingParams read_sampling(const Fields& body, const SamplingParams& defaults, const RequestLimits& limits) {
  SamplingParams params = defaults;
  for (const auto& [name, target] :
       std::initializer_list<std::pair<const char*, float*>>{{"temperature", &params.temperature},
                                                             {"top_p", &params.top_p},
                                                             {"min_p", &params.min_p},
                                                             {"typical_p", &params.typical_p},
                                                             {"repetition_penalty", &params.repetition_penalty},
                                                             {"presence_penalty", &params.presence_penalty},
                                                             {"frequency_penalty", &params.frequency_penalty}}) {
    read_number(body, name, *target);
  }
  // vLLM writes -1 for "all".
  if (const auto k = body.integer("top_k", -1, kMaxInt)) params.top_k = static_cast<int32_t>(std::max<int64_t>(*k, 0));
  if (const auto seed =
          body.integer("seed", std::numeric_limits<int64_t>::min(), std::numeric_limits<int64_t>::max())) {
    params.seed = static_cast<uint64_t>(*seed);
  }
  if (const auto n = body.integer("n", 1, limits.max_choices)) params.n = static_cast<int32_t>(*n);
  if (const auto n = body.integer("min_tokens", 0, kMaxInt)) params.min_tokens = static_cast<int32_t>(*n);
  if (const auto n = body.integer("prompt_logprobs", 0, limits.max_logprobs)) {
    params.prompt_logprobs = static_cast<int32_t>(*n);
  }
  read_flag(body, "ignore_eos", params.ignore_eos);
  read_flag(body, "include_stop_str_in_output", params.include_stop_str_in_output);
  read_flag(body, "skip_special_tokens", params.skip_special_tokens);
  params.allowed_token_ids = body.token_ids("allowed_token_ids");
  read_stops(body, limits, params);
  read_logit_bias(body, limits, params);
  return params;
}

StructuredOutput read_structured_output(const Fields& body) {
  StructuredOutput output;
  std::string first;
  const auto set = [&](std::string_view name, StructuredOutput value) {
    if (!first.empty()) {
      throw RequestError("invalid_value", std::string(name),
                         cat(name, " and ", first, ": only one of them can bind the answer"));
    }
    first = name;
    output = std::move(value);
  };
  const auto schema_text = [](const Fields& fields, std::string_view name) {
    const Json* schema = fields.find(name);
    return schema->is_string() ? schema->get<std::string>() : to_text(*schema);
  };
  if (const Json* format = body.object("response_format")) {
    const Fields fields(*format, "response_format");
    static constexpr std::string_view kTypes[] = {"text", "json_object", "json_schema"};
    const std::optional<std::string> type = fields.choice("type", kTypes);
    if (!type) fields.refuse("type", "text, json_object or json_schema");
    if (*type == "json_object") set("response_format", JsonObjectOutput{});
    if (*type == "json_schema") {
      const Json* wrapper = fields.object("json_schema");
      if (wrapper == nullptr) fields.refuse("json_schema", "an object with a schema");
      const Fields named(*wrapper, "response_format.json_schema");
      if (named.object("schema") == nullptr) named.refuse("schema", "a JSON schema");
      set("response_format", JsonSchemaOutput{schema_text(named, "schema")});
    }
  }
  const auto read_named = [&](const Fields& fields, const std::string& json, const std::string& regex,
                              const std::string& choice, const std::string& grammar) {
    if (fields.has(json)) set(fields.path(json), JsonSchemaOutput{schema_text(fields, json)});
    if (const auto pattern = fields.string(regex)) set(fields.path(regex), RegexOutput{*pattern});
    if (fields.has(choice)) set(fields.path(choice), ChoiceOutput{fields.strings(choice)});
    if (const auto lark = fields.string(grammar)) set(fields.path(grammar), GrammarOutput{*lark});
  };
  if (const Json* outputs = body.object("structured_outputs")) {
    const Fields fields(*outputs, "structured_outputs");
    read_named(fields, "json", "regex", "choice", "grammar");
    if (fields.boolean("json_object").value_or(false)) set("structured_outputs.json_object", JsonObjectOutput{});
    if (fields.has("structural_tag")) {
      set("structured_outputs.structural_tag", StructuralTagOutput{schema_text(fields, "structural_tag")});
    }
  }
  read_named(body, "guided_json", "guided_regex", "guided_choice", "guided_grammar");
  if (const auto pattern = body.string("regex")) set("regex", RegexOutput{*pattern});
  if (const auto lark = body.string("grammar")) set("grammar", GrammarOutput{*lark});
  if (body.has("json_schema")) set("json_schema", JsonSchemaOutput{schema_text(body, "json_schema")});
  return output;
}

void refuse_unsupported(const Fields& body) {
  struct Row {
    const char* name;
    Json harmless;  // the value that asks for nothing
    const char* advice;
  };
  static const Row kRows[] = {
      {"audio", Json(), "this model makes text only"},
      {"modalities", Json::array({"text"}), "this model makes text only"},
      {"prediction", Json(), "predicted outputs are not supported"},
      {"suffix", "", "filling in between two texts is not supported"},
      {"mirostat", 0, "use temperature, top_p, min_p or typical_p"},
      {"lora_path", Json(), "adapters are not supported"},
      {"session_params", Json(), "prefixes are cached without sessions"},
      {"return_hidden_states", false, "hidden states are not given out"},
      {"kv_transfer_params", Json(), "separate prefill is not supported"},
      {"ebnf", Json(), "use structured_outputs.grammar with a Lark grammar"},
      {"dry_multiplier", 0, "use repetition_penalty or frequency_penalty"},
      {"xtc_probability", 0, "use temperature, top_p or min_p"},
      {"no_repeat_ngram_size", 0, "use repetition_penalty or frequency_penalty"},
  };
  for (const Row& row : kRows) {
    const Json* value = body.find(row.name);
    if (value != nullptr && *value != row.harmless) {
      throw RequestError("unsupported_parameter", row.name, cat(row.name, " is not supported: ", row.advice));
    }
  }
}

}  // namespace headrace::openai
