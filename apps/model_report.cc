#include "apps/model_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "api/model_text.h"
#include "base/cat.h"
#include "model/product_recipe.h"

namespace headrace {
namespace {

using Json = nlohmann::ordered_json;

Json shapes_of(const ArchSpec& spec) {
  const LayerSpec& layer = spec.layers.front();
  return {{"layers", spec.num_layers()},          {"hidden", spec.hidden},
          {"heads", layer.attention.heads},       {"kv_heads", layer.attention.kv_heads},
          {"head_dim", layer.attention.head_dim}, {"feed_forward", layer.feed_forward.hidden},
          {"vocab_size", spec.vocab_size},        {"max_positions", spec.max_positions},
          {"tied_output", spec.tied_output}};
}

/// Tensors and bytes of each type and recipe, and the number of parameters.
void add_weights(const ModelFiles& files, const Engine& engine, const EngineConfig& config, Json& report) {
  struct Kind {
    DType dtype;
    const MatmulRecipe* recipe;
    int64_t tensors = 0;
    int64_t bytes = 0;
  };
  std::vector<Kind> kinds;
  const auto kind_of = [&](DType dtype, const MatmulRecipe* recipe) -> Kind& {
    // What nothing multiplies by stands with the rest of its type.
    const auto found = std::ranges::find_if(
        kinds, [&](const Kind& k) { return k.dtype == dtype && (k.recipe == recipe || recipe == nullptr); });
    return found != kinds.end() ? *found : kinds.emplace_back(dtype, recipe);
  };
  int64_t parameters = 0;
  for (const bool is_product : {true, false}) {
    for (const TensorSpec& tensor : engine.spec().tensors) {
      const TensorView view = find_spec_tensor(files, tensor);
      const MatmulRecipe* recipe = product_recipe(engine.spec(), tensor, config.numerics, view.dtype);
      if ((recipe != nullptr) != is_product) continue;
      parameters += num_elements(view.shape);
      Kind& kind = kind_of(view.dtype, recipe);
      kind.tensors += 1;
      kind.bytes += static_cast<int64_t>(view.bytes.size());
    }
  }
  std::ranges::stable_sort(kinds, {}, &Kind::dtype);
  report["parameters"] = parameters;
  report["types"] = Json::array();
  for (const Kind& kind : kinds) {
    Json row{{"type", dtype_name(kind.dtype)}, {"tensors", kind.tensors}, {"bytes", kind.bytes}};
    if (kind.recipe != nullptr) {
      row["recipe"] = recipe_text(*kind.recipe);
      row["layout"] = weight_layout_name(kind.recipe->layout);
    }
    report["types"].push_back(row);
  }
  report["file_bytes"] = engine.file_bytes();
  report["packed_bytes"] = engine.packed_bytes();
}

/// The kernels in use: of the matrix products those for types that the model has.
Json kernels_of(const Engine& engine, const Json& types) {
  Json kernels = Json::array();
  for (const ChosenKernel& kernel : engine.backend().chosen_kernels()) {
    const bool is_used = !kernel.op.starts_with("matmul ") || std::ranges::any_of(types, [&](const Json& type) {
      return type.contains("layout") && kernel.op.starts_with(cat("matmul ", type["type"].get<std::string>(), " ",
                                                                  type["layout"].get<std::string>()));
    });
    if (is_used) kernels.push_back({{"op", kernel.op}, {"variant", kernel.variant}});
  }
  return kernels;
}

Json kv_of(const Engine& engine) {
  Json groups = Json::array();
  int64_t total = 0;
  for (const CacheGroupSpec& group : engine.spec().cache_groups) {
    const int64_t bytes = kv_bytes_per_token(engine.spec(), group, engine.kv_dtype());
    groups.push_back({{"window", group.window}, {"layers", group.layers.size()}, {"bytes_per_token", bytes}});
    total += bytes;
  }
  return {{"type", dtype_name(engine.kv_dtype())},
          {"bytes_per_token", total},
          {"groups", groups},
          {"max_model_len", engine.max_model_len()}};
}

Json token_of(const Tokenizer& tokenizer, std::optional<TokenId> id) {
  if (!id) return nullptr;
  return {{"id", *id}, {"text", printable(tokenizer.token_text(*id))}};
}

Json tokenizer_of_report(const ModelFiles& files) {
  const Tokenizer tokenizer = tokenizer_of(files);
  Json ends = Json::array();
  for (const TokenId id : end_tokens(files, tokenizer)) ends.push_back(token_of(tokenizer, id));
  return {{"kind", tokenizer.kind()},
          {"pre_tokenizer", tokenizer.pre_tokenizer()},
          {"vocab_size", tokenizer.vocab_size()},
          {"bos", token_of(tokenizer, tokenizer.bos())},
          {"eos", token_of(tokenizer, tokenizer.eos())},
          {"unk", token_of(tokenizer, tokenizer.unk())},
          {"pad", token_of(tokenizer, tokenizer.pad())},
          {"ends", ends},
          {"adds_bos", tokenizer.add_bos()},
          {"adds_eos", tokenizer.add_eos()}};
}

std::string megabytes(const Json& bytes) { return fmt::format("{:.2f} MB", bytes.get<double>() / 1e6); }

std::string token_text(const Json& token) {
  if (token.is_null()) return "none";
  return cat(token["id"].get<int64_t>(), " ", token["text"].get<std::string>());
}

void line(std::string& out, std::string_view label, const std::string& text) {
  out += fmt::format("{:<15}{}\n", label, text);
}

void append_tokenizer(std::string& out, const Json& t) {
  const auto pre = t["pre_tokenizer"].get<std::string>();
  line(out, "tokenizer",
       cat(t["kind"].get<std::string>(), pre.empty() ? "" : cat(", pre-tokenizer ", pre), ", ",
           t["vocab_size"].get<int64_t>(), " tokens"));
  std::string ends;
  for (const Json& end : t["ends"]) ends += cat(ends.empty() ? "" : ", ", token_text(end));
  line(out, "  special",
       cat("bos ", token_text(t["bos"]), t["adds_bos"].get<bool>() ? " (put before prompts)" : "", "; eos ",
           token_text(t["eos"]), "; unk ", token_text(t["unk"]), "; pad ", token_text(t["pad"])));
  line(out, "  ends answers", ends.empty() ? "none" : ends);
}

}  // namespace

Json model_report(const ModelFiles& files, const Engine& engine, const EngineConfig& config) {
  Json report{{"model", files.name()},
              {"path", files.path()},
              {"format", model_format_name(files.format())},
              {"architecture", engine.spec().name},
              {"shapes", shapes_of(engine.spec())}};
  add_weights(files, engine, config, report);
  report["kv_cache"] = kv_of(engine);
  report["numerics"] = numerics_name(config.numerics);
  report["isa"] = isa_name(config.isa);
  report["backend"] = engine.backend().name();
  report["kernels"] = kernels_of(engine, report["types"]);
  report["tokenizer"] = tokenizer_of_report(files);
  report["chat_templates"] = Json::array();
  for (const ChatTemplate& t : files.chat_templates()) {
    report["chat_templates"].push_back({{"name", t.name}, {"bytes", t.text.size()}});
  }
  const SamplingParams sampling = default_sampling(files);
  report["sampling"] = {{"temperature", sampling.temperature},
                        {"top_k", sampling.top_k},
                        {"top_p", sampling.top_p},
                        {"min_p", sampling.min_p},
                        {"repetition_penalty", sampling.repetition_penalty}};
  return report;
}

std::string report_text(const Json& r) {
  std::string out;
  const Json& s = r["shapes"];
  const auto number = [&](const char* key) { return s[key].get<int64_t>(); };
  line(out, "model", cat(r["path"].get<std::string>(), " (", r["format"].get<std::string>(), ")"));
  line(out, "architecture", r["architecture"].get<std::string>());
  line(out, "parameters", fmt::format("{:.3f} million", r["parameters"].get<double>() / 1e6));
  line(
      out, "shapes",
      cat(number("layers"), " layers, hidden ", number("hidden"), ", ", number("heads"), " heads (", number("kv_heads"),
          " for keys and values) of ", number("head_dim"), ", feed-forward ", number("feed_forward")));
  line(out, "",
       cat("vocabulary ", number("vocab_size"), s["tied_output"].get<bool>() ? " (tied output)" : "", ", ",
           number("max_positions"), " positions"));
  line(out, "weights",
       cat(megabytes(r["file_bytes"]), " in the file, ", megabytes(r["packed_bytes"]), " packed ",
           fmt::format("({:.3f} x)", r["packed_bytes"].get<double>() / r["file_bytes"].get<double>())));
  for (const Json& type : r["types"]) {
    const std::string recipe = type.contains("recipe") ? cat(", recipe ", type["recipe"].get<std::string>(),
                                                             " in layout ", type["layout"].get<std::string>())
                                                       : "";
    line(out, cat("  ", type["type"].get<std::string>()),
         cat(type["tensors"].get<int64_t>(), " tensors, ", megabytes(type["bytes"]), recipe));
  }
  const Json& kv = r["kv_cache"];
  line(out, "KV cache",
       cat(kv["type"].get<std::string>(), ", ", kv["bytes_per_token"].get<int64_t>(),
           " bytes a token, sequences up to ", kv["max_model_len"].get<int64_t>(), " tokens here"));
  for (size_t i = 0; i < kv["groups"].size(); ++i) {
    const Json& group = kv["groups"][i];
    const auto window = group["window"].get<int64_t>();
    line(out, cat("  group ", i),
         cat(group["layers"].get<int64_t>(), " layers, ", window > 0 ? cat("window of ", window) : std::string("full"),
             ", ", group["bytes_per_token"].get<int64_t>(), " bytes a token"));
  }
  line(out, "numerics",
       cat(r["numerics"].get<std::string>(), ", isa ", r["isa"].get<std::string>(), ", backend ",
           r["backend"].get<std::string>()));
  for (const Json& kernel : r["kernels"]) {
    out += fmt::format("  {:<26} {}\n", kernel["op"].get<std::string>(), kernel["variant"].get<std::string>());
  }
  append_tokenizer(out, r["tokenizer"]);
  std::string templates;
  for (const Json& t : r["chat_templates"]) {
    templates += cat(templates.empty() ? "" : ", ", printable(t["name"].get<std::string>()), " (",
                     t["bytes"].get<int64_t>(), " bytes)");
  }
  line(out, "chat template", templates.empty() ? "none" : templates);
  const Json& p = r["sampling"];
  line(out, "sampling",
       fmt::format("temperature {:g}, top_k {}, top_p {:g}, min_p {:g}, repetition_penalty {:g}",
                   p["temperature"].get<double>(), p["top_k"].get<int64_t>(), p["top_p"].get<double>(),
                   p["min_p"].get<double>(), p["repetition_penalty"].get<double>()));
  return out;
}

}  // namespace headrace
