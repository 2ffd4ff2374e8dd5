// headrace._engine: models in this process.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <optional>

#include "headrace/headrace.h"
#include "python/src/native.h"

namespace headrace::python {
namespace {

LoadOptions load_options(const py::dict& options) {
  using L = LoadOptions;
  static const Setters<L> setters{{"threads", setter(&L::threads)},
                                  {"isa", setter(&L::isa)},
                                  {"numerics", setter(&L::numerics)},
                                  {"kv_cache_dtype", setter(&L::kv_cache_dtype)},
                                  {"max_model_len", setter(&L::max_model_len)},
                                  {"kv_cache_memory_bytes", setter(&L::kv_cache_memory_bytes)},
                                  {"enable_prefix_caching", setter(&L::prefix_caching)},
                                  {"max_num_seqs", setter(&L::max_num_seqs)},
                                  {"max_num_batched_tokens", setter(&L::max_num_batched_tokens)},
                                  {"max_queued_requests", setter(&L::max_queued_requests)},
                                  {"chat_template", setter(&L::chat_template)}};
  LoadOptions load;
  set_fields(options, setters, load);
  return load;
}

/// A request under way.
class LocalRequest {
 public:
  LocalRequest(std::shared_ptr<Model> model, Request request, std::shared_ptr<Waker> waker)
      : model_(std::move(model)), inbox_(std::make_shared<Inbox>(std::move(waker))) {
    const py::gil_scoped_release release;
    id_ =
        model_->submit(std::move(request), [inbox = inbox_](GenerationEvent&& event) { inbox->put(std::move(event)); });
  }
  py::list take(bool wait) { return inbox_->take(wait); }
  void cancel() {
    const py::gil_scoped_release release;
    model_->cancel(id_);
  }

 private:
  std::shared_ptr<Model> model_;
  std::shared_ptr<Inbox> inbox_;
  RequestId id_{};
};

/// A prompt: a text, tokens, or messages as (role, content).
using Prompt = std::variant<std::string, std::vector<int32_t>, std::vector<std::pair<std::string, std::string>>>;

class LocalModel {
 public:
  LocalModel(const std::string& model, const py::dict& options) {
    const LoadOptions load = load_options(options);
    const py::gil_scoped_release release;
    model_ = std::make_shared<Model>(Model::load(model, load));
  }
  ~LocalModel() { close(); }
  LocalModel(const LocalModel&) = delete;
  LocalModel& operator=(const LocalModel&) = delete;

  std::unique_ptr<LocalRequest> submit(const Prompt& prompt, const py::dict& sampling, int32_t priority, double timeout,
                                       std::shared_ptr<Waker> waker, bool) {
    Request request{.input = std::string(), .sampling = model().default_params()};
    if (const auto* text = std::get_if<0>(&prompt)) request.input = *text;
    if (const auto* tokens = std::get_if<1>(&prompt)) request.input = *tokens;
    if (const auto* messages = std::get_if<2>(&prompt)) {
      std::vector<Message> list;
      for (const auto& [role, content] : *messages) list.push_back({role, content});
      request.input = std::move(list);
    }
    set_sampling(sampling, request.sampling);
    request.priority = priority;
    request.timeout_seconds = timeout;
    return std::make_unique<LocalRequest>(model_, std::move(request), std::move(waker));
  }
  void close() {
    const py::gil_scoped_release release;  // the engine's thread ends
    model_.reset();
  }
  [[nodiscard]] const Model& model() const {
    if (!model_) throw Error(ErrorCode::kUnavailable, "this model was closed");
    return *model_;
  }

 private:
  std::shared_ptr<Model> model_;
};

}  // namespace

PYBIND11_MODULE(_engine, module) {
  add_common(module);
  py::class_<LocalRequest>(module, "Request", py::module_local())
      .def("take", &LocalRequest::take)
      .def("cancel", &LocalRequest::cancel);
  py::class_<LocalModel>(module, "Model", py::module_local())
      .def(py::init<const std::string&, const py::dict&>())
      .def("submit", &LocalModel::submit)
      .def("close", &LocalModel::close)
      .def("tokenize", [](const LocalModel& m, const std::string& text,
                          bool special) { return m.model().tokenize(text, special, true); })
      .def("detokenize", [](const LocalModel& m, const std::vector<int32_t>& tokens,
                            bool skip) { return m.model().detokenize(tokens, skip); })
      .def_property_readonly("name", [](const LocalModel& m) { return m.model().name(); })
      .def_property_readonly("max_model_len", [](const LocalModel& m) { return m.model().max_model_len(); });
}

}  // namespace headrace::python
