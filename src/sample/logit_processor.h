#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/ids.h"

namespace headrace {

/// Changes the logits of one continuation before a token is chosen. It belongs to that continuation alone and follows
/// its tokens. Threading: one thread at a time; prepare() may run on another one while the model computes, and must
/// have returned before anything else is called.
class LogitProcessor {
 public:
  LogitProcessor() = default;
  virtual ~LogitProcessor() = default;
  LogitProcessor& operator=(const LogitProcessor&) = delete;

  /// A copy that goes its own way: an answer that forks takes its processors along.
  [[nodiscard]] virtual std::unique_ptr<LogitProcessor> clone() const = 0;
  /// What can be done for the next token before its logits are there. Calling it is not needed, calling it again does
  /// nothing.
  virtual void prepare() {}
  virtual void apply(std::span<float> logits) = 0;
  /// The token that was chosen.
  virtual void accept(TokenId token) = 0;

 protected:
  LogitProcessor(const LogitProcessor&) = default;  // for clone()
};

/// The processors of one continuation, in the order in which they are applied. Copies are deep.
class LogitProcessors {
 public:
  LogitProcessors() = default;
  LogitProcessors(const LogitProcessors& other) {
    list_.reserve(other.list_.size());
    for (const auto& processor : other.list_) list_.push_back(processor->clone());
  }
  LogitProcessors& operator=(const LogitProcessors& other) { return *this = LogitProcessors(other); }
  LogitProcessors(LogitProcessors&&) noexcept = default;
  LogitProcessors& operator=(LogitProcessors&&) noexcept = default;
  ~LogitProcessors() = default;

  void add(std::unique_ptr<LogitProcessor> processor) { list_.push_back(std::move(processor)); }
  [[nodiscard]] bool empty() const noexcept { return list_.empty(); }
  void prepare() {
    for (const auto& processor : list_) processor->prepare();
  }
  void apply(std::span<float> logits) {
    for (const auto& processor : list_) processor->apply(logits);
  }
  void accept(TokenId token) {
    for (const auto& processor : list_) processor->accept(token);
  }

 private:
  std::vector<std::unique_ptr<LogitProcessor>> list_;
};

}  // namespace headrace
