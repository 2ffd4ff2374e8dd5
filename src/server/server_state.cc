#include "server/server_state.h"

namespace headrace::server {

std::string_view phase_name(Phase phase) noexcept {
  switch (phase) {
    case Phase::kLoading:
      return "loading";
    case Phase::kReady:
      return "ready";
    case Phase::kDraining:
      return "draining";
    case Phase::kFailed:
      return "failed";
  }
  return "?";
}

void ServerState::set_ready(std::unique_ptr<Model> model) {
  model_ = std::move(model);
  model_pointer_ = model_.get();
  load_progress_ = 1;
  Phase loading = Phase::kLoading;
  phase_.compare_exchange_strong(loading, Phase::kReady);  // a drain that began meanwhile goes on
}

void ServerState::drop_model() {
  model_pointer_ = nullptr;
  model_.reset();
}

}  // namespace headrace::server
