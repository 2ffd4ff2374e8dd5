#pragma once

#include <pybind11/pybind11.h>

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <variant>
#include <vector>

#include "headrace/generation.h"

namespace headrace::python {

namespace py = pybind11;

/// Tells an event loop, by a file descriptor that becomes readable, that requests have news. Threading: every function
/// from any thread.
class Waker {
 public:
  Waker();
  ~Waker();
  Waker(const Waker&) = delete;
  Waker& operator=(const Waker&) = delete;
  void wake() noexcept;
  /// Takes back what woke the loop.
  void clear() noexcept;
  [[nodiscard]] int fileno() const noexcept { return fd_; }

 private:
  int fd_;
};

/// What comes of one request, from the threads that make it to Python, which it never waits for.
class Inbox {
 public:
  explicit Inbox(std::shared_ptr<Waker> waker) : waker_(std::move(waker)) {}
  void put(GenerationEvent&& event);
  void put(std::exception_ptr error);
  /// All that came, as tuples (choice, text, tokens, logprobs, prompt_logprobs, finish_reason, stop_reason, usage,
  /// last). Throws what the request failed with, once the events before it were taken. `wait`: for the first one, with
  /// the interpreter's lock released and Ctrl-C heeded.
  [[nodiscard]] py::list take(bool wait);

 private:
  using Item = std::variant<GenerationEvent, std::exception_ptr>;
  void add(Item item);
  void wait_for_one();

  const std::shared_ptr<Waker> waker_;
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<Item> items_;
};

/// How each field of a struct is set from Python, by its name there.
template <class Params>
using Setters = std::map<std::string, std::function<void(Params&, py::handle)>>;

template <class Params, class Field>
std::function<void(Params&, py::handle)> setter(Field Params::*field) {
  return [field](Params& params, py::handle value) { params.*field = py::cast<Field>(value); };
}

/// TypeError: a value that a parameter cannot have.
[[noreturn]] void refuse_value(const std::string& name, py::handle value);

/// Sets what `options` names; a name that is none, or a value of another type, is a TypeError.
template <class Params>
void set_fields(const py::dict& options, const Setters<Params>& setters, Params& params) {
  for (const auto& [key, value] : options) {
    const auto name = py::cast<std::string>(key);
    const auto found = setters.find(name);
    if (found == setters.end()) throw py::type_error("there is no parameter '" + name + "'");
    try {
      found->second(params, value);
    } catch (const py::cast_error&) {
      refuse_value(name, value);
    }
  }
}

void set_sampling(const py::dict& options, SamplingParams& params);

/// Classes and exceptions that both modules have.
void add_common(py::module_& module);

}  // namespace headrace::python
