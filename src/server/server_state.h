#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "headrace/headrace.h"

namespace headrace::server {

enum class Phase {
  kLoading,   ///< the model is not there yet
  kReady,     ///< requests are answered
  kDraining,  ///< those that run are answered, no new ones are taken
  kFailed,    ///< the model could not be loaded, or its steps no longer end
};
[[nodiscard]] std::string_view phase_name(Phase phase) noexcept;  ///< "loading", "ready", ...

/// Where the server is between its start and its end. Threading: every function from any thread.
class ServerState {
 public:
  void set_load_progress(double share) noexcept { load_progress_ = share; }
  [[nodiscard]] double load_progress() const noexcept { return load_progress_; }

  /// The model is there: from now on requests are answered.
  void set_ready(std::unique_ptr<Model> model);
  void set_failed() noexcept { phase_ = Phase::kFailed; }
  void begin_drain() noexcept { phase_ = Phase::kDraining; }
  [[nodiscard]] Phase phase() const noexcept { return phase_; }

  /// nullptr until it is loaded; then it stays for the life of this object.
  [[nodiscard]] Model* model() const noexcept { return model_pointer_; }
  /// Takes the model away, for the end: nobody may use it any more.
  void drop_model();

 private:
  std::atomic<Phase> phase_ = Phase::kLoading;
  std::atomic<double> load_progress_ = 0;
  std::unique_ptr<Model> model_;
  std::atomic<Model*> model_pointer_ = nullptr;
};

}  // namespace headrace::server
