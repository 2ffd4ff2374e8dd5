#include "engine/row_sampler.h"

namespace headrace {
namespace {

/// Weights that are broken, or too large for their type, make some or all logits NaN.
bool has_nan(std::span<const float> logits) noexcept {
  int nans = 0;  // no early exit: the loop is made of vectors
  for (const float logit : logits) nans |= static_cast<int>(logit != logit);
  return nans != 0;
}

}  // namespace
RowSampler::RowSampler(ComputePool& pool, int32_t vocab_size) : pool_(pool) {
  for (int i = 0; i < pool.threads(); ++i) {
    samplers_.push_back(std::make_unique<Sampler>(vocab_size));
    idle_.push_back(samplers_.back().get());
  }
}

void RowSampler::run(std::span<SampleJob> jobs) noexcept {
  struct Context {
    RowSampler& self;
    std::span<SampleJob> jobs;
  } context{*this, jobs};
  const auto sample_range = [](void* opaque, int64_t begin, int64_t end) noexcept {
    auto& [self, all] = *static_cast<Context*>(opaque);
    Sampler* sampler = nullptr;
    {
      const std::lock_guard lock(self.mutex_);
      sampler = self.idle_.back();  // as many as the pool has threads
      self.idle_.pop_back();
    }
    for (SampleJob& job : all.subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin))) {
      job.is_broken = has_nan(job.logits);
      if (!job.is_broken) job.sampled = job.continuation->sample(*sampler, job.logits, job.position);
    }
    const std::lock_guard lock(self.mutex_);
    self.idle_.push_back(sampler);
  };
  pool_.parallel_for(static_cast<int64_t>(jobs.size()), 1, sample_range, &context);
}

}  // namespace headrace
