#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "cluster/link.h"

namespace headrace::cluster {

/// Told how far a long task is, 0 to 1.
using TaskProgress = std::function<void(double)>;

/// Asks a worker, over its control link: one question at a time. Threading: one thread.
class ControlClient {
 public:
  ControlClient(std::unique_ptr<Link> link, std::string name) : link_(std::move(link)), name_(std::move(name)) {}

  /// The answer to {"ask": what, ...fields}. A worker that tells how far it is may take `seconds` more after each time
  /// that it does, of which `progress` is told. Throws what the worker refuses with, kTimeout or kUnavailable, each
  /// naming worker and question; the link is of no more use after the last two.
  nlohmann::json ask(const char* what, nlohmann::json fields, double seconds, const TaskProgress& progress = {});

 private:
  std::unique_ptr<Link> link_;
  std::string name_;
  std::vector<std::byte> payload_;
  uint64_t questions_ = 0;
};

/// Answers questions of a head until the link ends. `answer(what, fields, progress)` throws Error for what it refuses.
using ControlAnswer =
    std::function<nlohmann::json(const std::string& what, const nlohmann::json& fields, const TaskProgress& progress)>;
void serve_control(Link& link, const ControlAnswer& answer);

}  // namespace headrace::cluster
