#include "arch/rope_config.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/byte_order.h"
#include "base/error.h"
#include "base/exact_math.h"

namespace headrace {
namespace {

/// 1 / base^(2 i / dim) for each pair, rounded to f32 as the reference implementations have it.
std::vector<float> plain_frequencies(double base, int32_t dim) {
  std::vector<float> inv_freq;
  for (int32_t i = 0; i < dim; i += 2) {
    inv_freq.push_back(static_cast<float>(1.0 / exact_pow(base, static_cast<double>(i) / dim)));
  }
  return inv_freq;
}

struct YarnConfig {
  double base, factor, original, beta_fast = 32, beta_slow = 1;
  bool truncate = true;
};

/// YaRN (arXiv:2309.00071): pairs that turn often keep their frequency, slow ones are interpolated, a ramp between.
std::vector<float> yarn_frequencies(const YarnConfig& yarn, int32_t dim) {
  const auto pair_of_turns = [&](double turns) {
    return dim * exact_log(yarn.original / (turns * 2 * std::numbers::pi)) / (2 * exact_log(yarn.base));
  };
  double low = pair_of_turns(yarn.beta_fast);
  double high = pair_of_turns(yarn.beta_slow);
  if (yarn.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, dim - 1.0);
  if (low == high) high += 0.001;
  std::vector<float> inv_freq = plain_frequencies(yarn.base, dim);
  for (size_t i = 0; i < inv_freq.size(); ++i) {
    const double ramp = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
    inv_freq[i] = static_cast<float>(inv_freq[i] / yarn.factor * ramp + inv_freq[i] * (1 - ramp));
  }
  return inv_freq;
}

double yarn_mscale(double factor, double mscale = 1) {
  return factor <= 1 ? 1.0 : 0.1 * mscale * exact_log(factor) + 1.0;
}

/// Llama 3.1: long wavelengths are divided by the factor, short ones kept, a smooth passage between.
void scale_llama3(std::vector<float>& inv_freq, double factor, double low_factor, double high_factor, double original) {
  for (float& f : inv_freq) {
    const double wavelength = 2 * std::numbers::pi / f;
    if (wavelength > original / low_factor) {
      f = static_cast<float>(f / factor);
    } else if (wavelength >= original / high_factor) {
      const double smooth = (original / wavelength - low_factor) / (high_factor - low_factor);
      f = static_cast<float>((1 - smooth) * f / factor + smooth * f);
    }
  }
}

double positive(const Metadata& md, const std::string& key, double value) {
  if (!(value > 0) || !std::isfinite(value)) md.fail(key, cat("is ", value, ", expected a positive number"));
  return value;
}

RopeSpec read_hf_rope(const Metadata& md, RopeSpec rope, int32_t dim, int32_t max_positions) {
  // "rope_parameters" since transformers 5, "rope_scaling" with "rope_theta" beside it before.
  const std::string prefix = md.has("rope_parameters") ? "rope_parameters." : "rope_scaling.";
  const auto number = [&](const std::string& key) { return md.get_float(prefix + key); };
  const auto required = [&](const std::string& key) {
    return positive(md, prefix + key, md.require_float(prefix + key));
  };
  const double base =
      positive(md, "rope_theta", number("rope_theta").value_or(md.get_float("rope_theta").value_or(10000.0)));
  std::string type = md.get_string(prefix + "rope_type").value_or("");
  if (type.empty()) type = md.get_string(prefix + "type").value_or("default");
  const double original =
      positive(md, prefix + "original_max_position_embeddings",
               number("original_max_position_embeddings")
                   .value_or(md.get_float("original_max_position_embeddings").value_or(max_positions)));

  rope.inv_freq = plain_frequencies(base, dim);
  if (type == "linear") {
    const double factor = required("factor");
    for (float& f : rope.inv_freq) f = static_cast<float>(f / factor);
  } else if (type == "llama3") {
    scale_llama3(rope.inv_freq, required("factor"), required("low_freq_factor"), required("high_freq_factor"),
                 required("original_max_position_embeddings"));
  } else if (type == "yarn") {
    YarnConfig yarn{.base = base, .factor = required("factor"), .original = original};
    yarn.beta_fast = number("beta_fast").value_or(32);
    yarn.beta_slow = number("beta_slow").value_or(1);
    yarn.truncate = md.get_bool(prefix + "truncate").value_or(true);
    rope.inv_freq = yarn_frequencies(yarn, dim);
    const double mscale = number("mscale").value_or(0);
    const double mscale_all = number("mscale_all_dim").value_or(0);
    const double by_mscale = mscale != 0 && mscale_all != 0
                                 ? yarn_mscale(yarn.factor, mscale) / yarn_mscale(yarn.factor, mscale_all)
                                 : yarn_mscale(yarn.factor);
    rope.scale = static_cast<float>(number("attention_factor").value_or(by_mscale));
  } else if (type != "default") {
    md.fail(prefix + "rope_type", cat("is '", printable(type), "', expected default, linear, llama3 or yarn"));
  }
  return rope;
}

/// Divides the frequencies by the factors that llama.cpp's converter stores for Llama 3.1 and later.
void apply_frequency_factors(const ModelFiles& files, RopeSpec& rope) {
  const TensorView* factors = files.find("rope_freqs.weight");
  if (factors == nullptr) return;
  const auto n = static_cast<int64_t>(rope.inv_freq.size());
  if (factors->dtype != DType::kF32 || num_elements(factors->shape) != n) {
    throw LoadError(files.path(),
                    cat("rope_freqs.weight: ", dtype_name(factors->dtype), " ", shape_text(factors->shape),
                        ", expected F32 [", n, "], one for each rotated pair"));
  }
  for (size_t i = 0; i < rope.inv_freq.size(); ++i) {
    const float factor = load_le<float>(factors->bytes.data() + i * sizeof(float));
    if (!(factor > 0)) throw LoadError(files.path(), cat("rope_freqs.weight: entry ", i, " is ", factor));
    rope.inv_freq[i] /= factor;
  }
}

RopeSpec read_gguf_rope(const ModelFiles& files, RopeSpec rope, int32_t dim, int32_t max_positions) {
  const Metadata& md = files.metadata();
  const std::string prefix = md.require_string("general.architecture") + ".rope.";
  const auto number = [&](const std::string& key, double otherwise) {
    return positive(md, prefix + key, md.get_float(prefix + key).value_or(otherwise));
  };
  const double base = number("freq_base", 10000.0);
  const std::string type = md.get_string(prefix + "scaling.type").value_or("none");
  // scale_linear is the spelling of old files.
  const double factor = number("scaling.factor", number("scale_linear", 1.0));
  rope.inv_freq = plain_frequencies(base, dim);
  if (type == "yarn") {
    YarnConfig yarn{
        .base = base, .factor = factor, .original = number("scaling.original_context_length", max_positions)};
    yarn.beta_fast = number("scaling.yarn_beta_fast", 32);
    yarn.beta_slow = number("scaling.yarn_beta_slow", 1);
    rope.inv_freq = yarn_frequencies(yarn, dim);
    rope.scale = static_cast<float>(number("scaling.attn_factor", 1.0) * yarn_mscale(factor));
  } else if (type == "linear" || (type == "none" && md.has(prefix + "scale_linear"))) {
    for (float& f : rope.inv_freq) f = static_cast<float>(f / factor);
  } else if (type != "none") {
    md.fail(prefix + "scaling.type", cat("is '", printable(type), "', expected none, linear or yarn"));
  }
  apply_frequency_factors(files, rope);
  return rope;
}

}  // namespace

RopeSpec read_rope(const ModelFiles& files, RopeLayout layout, int32_t rotary_dim, int32_t max_positions) {
  RopeSpec rope;
  rope.layout = layout;
  return files.format() == ModelFormat::kGguf
             ? read_gguf_rope(files, std::move(rope), rotary_dim, max_positions)
             : read_hf_rope(files.metadata(), std::move(rope), rotary_dim, max_positions);
}

}  // namespace headrace
