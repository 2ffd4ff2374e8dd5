#include "model/stage_units.h"

#include "base/cat.h"
#include "base/check.h"

namespace headrace {
namespace {

std::string whole_layers_text(int32_t first, int32_t end) {
  return end - first == 1 ? cat("layer ", first) : cat("layers ", first, "-", end - 1);
}

}  // namespace

bool StageUnits::holds(const ArchSpec& spec, const TensorSpec& tensor) const noexcept {
  switch (tensor.unit) {
    case UnitKind::kEmbedding:
      return embedding || (output && spec.tied_output);
    case UnitKind::kAttention:
      return has_attention(tensor.layer);
    case UnitKind::kFeedForward:
      return has_feed_forward(tensor.layer);
    case UnitKind::kOutput:
      return output;
  }
  return false;
}

StageUnits whole_model(const ArchSpec& spec) noexcept {
  return {.embedding = true, .first_sublayer = 0, .end_sublayer = kSublayers * spec.num_layers(), .output = true};
}

std::vector<StageUnits> even_cut(const ArchSpec& spec, int32_t stages) {
  HR_CHECK(stages >= 1 && stages <= spec.num_layers(), stages, " stages of ", spec.num_layers(), " layers");
  std::vector<StageUnits> cut;
  for (int32_t i = 0; i < stages; ++i) {
    cut.push_back({.embedding = i == 0,
                   .first_sublayer = kSublayers * (spec.num_layers() * i / stages),
                   .end_sublayer = kSublayers * (spec.num_layers() * (i + 1) / stages),
                   .output = i == stages - 1});
  }
  return cut;
}

std::string layers_text(const StageUnits& units) {
  if (units.num_sublayers() == 0) return "no layers";
  const int32_t first = units.first_cached(), end = units.end_sublayer / kSublayers;  // of whole layers
  std::string text;
  const auto add = [&](const std::string& part) { text += text.empty() ? part : cat(" and ", part); };
  const bool begins_inside = units.first_sublayer % kSublayers != 0;
  const bool ends_inside = units.end_sublayer % kSublayers != 0;
  if (begins_inside) add(cat("the feed-forward of layer ", units.first_layer()));
  if (first < end) add(whole_layers_text(first, end));
  if (ends_inside) add(cat("the attention of ", first < end ? "" : "layer ", end));
  return text;
}

}  // namespace headrace
