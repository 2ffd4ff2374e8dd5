#include "model/stage_weights.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "model/product_recipe.h"

namespace headrace {

/// Reads, checks and packs tensors one after the other.
class StageWeights::Loader {
 public:
  Loader(StageWeights& to, Backend& backend, ComputePool& pool, const ModelFiles& files, const ArchSpec& spec,
         Numerics numerics, const LoadProgress& progress, bool has_table)
      : to_(to),
        backend_(backend),
        pool_(pool),
        files_(files),
        spec_(spec),
        numerics_(numerics),
        progress_(progress),
        queue_(backend.make_queue()) {
    for (const TensorSpec& tensor : spec.tensors) {
      if (has_table && tensor.unit == UnitKind::kEmbedding) continue;
      if (to.units_.holds(spec, tensor)) total_bytes_ += static_cast<int64_t>(share(tensor).bytes.size());
    }
  }

  /// The vector of that name, widened to f32.
  const float* vector(const std::string& name) {
    const TensorView from = share(require(name));
    const BlockFormat* format = find_format(from.dtype);
    if (format == nullptr) unsupported(name, from.dtype);
    std::vector<float> values(static_cast<size_t>(num_elements(from.shape)));
    format->decode(from.bytes.data(), static_cast<int64_t>(values.size()), values.data());
    DeviceBuffer buffer(backend_, static_cast<int64_t>(values.size() * sizeof(float)));
    backend_.upload(*queue_, buffer.data(), values.data(), buffer.bytes());
    queue_->synchronize();
    finished(from, buffer.bytes());
    return keep(std::move(buffer)).as<float>();
  }

  /// The matrix `base`.weight, packed by its recipe, with `base`.bias where `biased`.
  Linear linear(const std::string& base, bool biased) {
    const std::string name = base + ".weight";
    const TensorView from = share(require(name));
    Linear out;
    out.recipe = recipe(name, from.dtype);
    out.w = pack(from, out.recipe->layout);
    if (biased) out.bias = vector(base + ".bias");
    return out;
  }
  void attention(int32_t index, const AttentionSpec& spec, LayerWeights& w) {
    const auto name = [&](const char* part) { return cat("blk.", index, ".attn_", part); };
    w.attn_norm = vector(name("norm.weight"));
    w.q = linear(name("q"), spec.qkv_bias);
    w.k = linear(name("k"), spec.qkv_bias);
    w.v = linear(name("v"), spec.qkv_bias);
    w.attn_output = linear(name("output"), spec.output_bias);
    if (spec.qk_norm) {
      w.q_norm = vector(name("q_norm.weight"));
      w.k_norm = vector(name("k_norm.weight"));
    }
  }
  void feed_forward(int32_t index, const FeedForwardSpec& spec, LayerWeights& w) {
    const auto name = [&](const char* part) { return cat("blk.", index, ".ffn_", part); };
    w.ffn_norm = vector(name("norm.weight"));
    w.gate = linear(name("gate"), spec.bias);
    w.up = linear(name("up"), spec.bias);
    w.down = linear(name("down"), spec.bias);
  }
  /// The output projection on the embedding's table: its first rows on rank 0, which has the table, packed ones on
  /// others.
  Linear tied_output(const std::string& name, const WeightView& table) {
    const TensorView whole = source(require(name));
    const MatmulRecipe* how = recipe(name, whole.dtype);
    const TensorSpec& tensor = require(name);
    const RankPlace place = to_.place_;
    const ShardRange rows = split_evenly(tensor.shape[0], tensor.shard_unit, place.rank, place.ranks);
    Linear out{.w = table, .bias = nullptr, .recipe = how};
    if (place.rank == 0) {
      out.w.n = rows.size();  // groups of neurons lie one after the other
    } else {
      out.w = pack(part(whole, rows), how->layout);
    }
    return out;
  }

  /// The embedding's table: in the layout that the tied output projection wants, which may be another stage's; else as
  /// in the file.
  WeightView embedding(const std::string& name) {
    const TensorView from = source(require(name));
    if (find_format(from.dtype) == nullptr) unsupported(name, from.dtype);
    // Whoever looks up embeddings has the whole table.
    return pack(from, spec_.tied_output ? recipe(name, from.dtype)->layout : WeightLayout::kRows);
  }

 private:
  const MatmulRecipe* recipe(const std::string& name, DType dtype) {
    const MatmulRecipe* found = product_recipe(spec_, require(name), numerics_, dtype);
    if (found == nullptr || !backend_.has_matmul(dtype, found->layout)) unsupported(name, dtype);
    return found;
  }

  const TensorSpec& require(const std::string& name) const {
    const TensorSpec* tensor = spec_.find_tensor(name);
    HR_CHECK(tensor != nullptr, "architecture ", spec_.name, " lists no tensor ", name);
    return *tensor;
  }
  TensorView source(const TensorSpec& tensor) const { return find_spec_tensor(files_, tensor); }
  /// This rank's rows of it.
  TensorView share(const TensorSpec& tensor) const {
    return part(source(tensor), shard_range(tensor, to_.place_.rank, to_.place_.ranks));
  }
  static TensorView part(TensorView tensor, ShardRange rows) {
    const size_t row_bytes = tensor.bytes.size() / static_cast<size_t>(tensor.shape[0]);
    tensor.bytes =
        tensor.bytes.subspan(static_cast<size_t>(rows.begin) * row_bytes, static_cast<size_t>(rows.size()) * row_bytes);
    tensor.shape[0] = rows.size();
    return tensor;
  }

  [[noreturn]] void unsupported(const std::string& name, DType dtype) const {
    throw LoadError(files_.path(), cat(name, ": type ", dtype_name(dtype), " holds no weights that can be multiplied"),
                    ErrorCode::kUnsupported);
  }

  WeightView pack(const TensorView& from, WeightLayout layout) {
    const int64_t n = from.shape[0];
    const int64_t k = from.shape[1];
    DeviceBuffer buffer(backend_, headrace::packed_bytes(from.dtype, layout, n, k));
    std::byte* host = backend_.host_view(buffer.data());
    std::vector<std::byte> staging(host == nullptr ? static_cast<size_t>(buffer.bytes()) : 0);
    Job job{from, layout, n, k, host == nullptr ? staging.data() : host};
    constexpr int64_t kGrain = 4;  // groups: enough work for a thread to be woken, small enough to balance
    pool_.parallel_for((n + kNeuronGroup - 1) / kNeuronGroup, kGrain, pack_groups, &job);
    if (host == nullptr) {
      backend_.upload(*queue_, buffer.data(), staging.data(), buffer.bytes());
      queue_->synchronize();
    }
    finished(from, buffer.bytes());
    return {.dtype = from.dtype, .layout = layout, .n = n, .k = k, .data = keep(std::move(buffer)).data()};
  }

  struct Job {
    const TensorView& from;
    WeightLayout layout;
    int64_t n, k;
    std::byte* out;
  };
  static void pack_groups(void* context, int64_t begin, int64_t end) noexcept {
    const Job& job = *static_cast<Job*>(context);
    pack_weights(job.from.dtype, job.layout, job.from.bytes, job.n, job.k, begin * kNeuronGroup,
                 std::min(end * kNeuronGroup, job.n), job.out);
  }

  void finished(const TensorView& from, int64_t device_bytes) {
    const auto file_bytes = static_cast<int64_t>(from.bytes.size());
    files_.drop_pages(from.bytes);
    to_.packed_bytes_ += device_bytes;
    to_.file_bytes_ += file_bytes;
    if (progress_ && total_bytes_ > 0) {
      progress_(static_cast<double>(to_.file_bytes_) / static_cast<double>(total_bytes_));
    }
  }
  const DeviceBuffer& keep(DeviceBuffer buffer) { return to_.buffers_.emplace_back(std::move(buffer)); }

  StageWeights& to_;
  Backend& backend_;
  ComputePool& pool_;
  const ModelFiles& files_;
  const ArchSpec& spec_;
  Numerics numerics_;
  const LoadProgress& progress_;
  std::unique_ptr<Queue> queue_;
  int64_t total_bytes_ = 0;
};

StageWeights::StageWeights(Backend& backend, ComputePool& pool, const ModelFiles& files, const ArchSpec& spec,
                           Numerics numerics, const StageUnits& units, const LoadProgress& progress,
                           const WeightView* tied_table, RankPlace place)
    : units_(units), place_(place) {
  const bool has_table = units.output && spec.tied_output && tied_table != nullptr;
  Loader loader(*this, backend, pool, files, spec, numerics, progress, has_table);
  const std::string embedding_name = "token_embd.weight";
  if (has_table) {
    embedding_ = *tied_table;
  } else if (place.rank == 0 && (units.embedding || (units.output && spec.tied_output))) {
    embedding_ = loader.embedding(embedding_name);
  }
  for (int32_t i = units.first_layer(); i < units.end_layer(); ++i) {
    const LayerSpec& layer = spec.layers[static_cast<size_t>(i)];
    LayerWeights& w = layers_.emplace_back();
    if (units.has_attention(i)) loader.attention(i, layer.attention, w);
    if (units.has_feed_forward(i)) loader.feed_forward(i, layer.feed_forward, w);
  }
  if (units.output) {
    output_norm_ = loader.vector("output_norm.weight");
    if (spec.tied_output) {
      output_ = loader.tied_output(embedding_name, embedding_);
    } else {
      output_ = loader.linear("output", false);
    }
  }
}

}  // namespace headrace
