#include "python/src/native.h"

#include <pybind11/stl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <chrono>

namespace headrace::python {
namespace {

py::tuple logprob_tuple(const TokenLogprob& l) { return py::make_tuple(l.token, l.logprob, l.rank); }

py::list logprobs_list(const std::vector<TokenLogprobs>& logprobs) {
  py::list places;
  for (const TokenLogprobs& place : logprobs) {
    py::list top;
    for (const TokenLogprob& l : place.top) top.append(logprob_tuple(l));
    places.append(py::make_tuple(logprob_tuple(place.chosen), std::move(top)));
  }
  return places;
}

py::object stop_reason(const StopCause& cause) {
  if (!cause.text.empty()) return py::str(cause.text);
  if (cause.token) return py::int_(*cause.token);
  return py::none();
}

py::tuple event_tuple(const GenerationEvent& event) {
  const Usage& u = event.usage;
  return py::make_tuple(event.choice, event.text, event.tokens, logprobs_list(event.logprobs),
                        logprobs_list(event.prompt_logprobs),
                        event.finish_reason ? py::object(py::str(std::string(finish_reason_name(*event.finish_reason))))
                                            : py::object(py::none()),
                        stop_reason(event.stop_cause),
                        py::make_tuple(u.prompt_tokens, u.cached_tokens, u.completion_tokens, u.queued_seconds,
                                       u.first_token_seconds, u.total_seconds),
                        event.last);
}

StructuredOutput structure_of(const py::dict& options) {
  if (options.size() != 1) throw py::type_error("structured_output: expected a dict with one entry, its kind");
  const auto kind = py::cast<std::string>(options.begin()->first);
  const py::handle value = options.begin()->second;
  if (kind == "json_schema") return JsonSchemaOutput{py::cast<std::string>(value)};
  if (kind == "json_object") return JsonObjectOutput{};
  if (kind == "regex") return RegexOutput{py::cast<std::string>(value)};
  if (kind == "choice") return ChoiceOutput{py::cast<std::vector<std::string>>(value)};
  if (kind == "grammar") return GrammarOutput{.lark = py::cast<std::string>(value)};
  if (kind == "structural_tag") return StructuralTagOutput{py::cast<std::string>(value)};
  throw py::type_error("structured_output: '" + kind +
                       "' is not one of: json_schema, json_object, regex, choice, grammar, structural_tag");
}

const Setters<SamplingParams>& sampling_setters() {
  using P = SamplingParams;
  static const Setters<P> all{
      {"temperature", setter(&P::temperature)},
      {"top_k", setter(&P::top_k)},
      {"top_p", setter(&P::top_p)},
      {"min_p", setter(&P::min_p)},
      {"typical_p", setter(&P::typical_p)},
      {"repetition_penalty", setter(&P::repetition_penalty)},
      {"presence_penalty", setter(&P::presence_penalty)},
      {"frequency_penalty", setter(&P::frequency_penalty)},
      {"seed", setter(&P::seed)},
      {"logit_bias", setter(&P::logit_bias)},
      {"allowed_token_ids", setter(&P::allowed_token_ids)},
      {"bad_words", setter(&P::bad_words)},
      {"n", setter(&P::n)},
      {"best_of", setter(&P::best_of)},
      {"max_tokens", setter(&P::max_tokens)},
      {"min_tokens", setter(&P::min_tokens)},
      {"ignore_eos", setter(&P::ignore_eos)},
      {"stop", setter(&P::stop)},
      {"stop_token_ids", setter(&P::stop_token_ids)},
      {"include_stop_str_in_output", setter(&P::include_stop_str_in_output)},
      {"skip_special_tokens", setter(&P::skip_special_tokens)},
      {"logprobs", setter(&P::logprobs)},
      {"prompt_logprobs", setter(&P::prompt_logprobs)},
      {"structured_output",
       [](P& params, py::handle value) { params.structured_output = structure_of(py::cast<py::dict>(value)); }},
  };
  return all;
}

/// Raises the class of headrace._errors that stands for the error.
void raise(const Error& error, const std::string& kind) {
  const py::object make = py::module_::import("headrace._errors").attr("make_error");
  std::string parameter;
  int64_t prompt_tokens = 0, max_model_len = 0;
  if (const auto* p = dynamic_cast<const ParameterError*>(&error)) parameter = p->parameter();
  if (const auto* c = dynamic_cast<const ContextLengthError*>(&error)) {
    prompt_tokens = c->prompt_tokens();
    max_model_len = c->max_model_len();
  }
  const py::object raised = make(kind, error.message(), parameter, prompt_tokens, max_model_len);
  PyErr_SetObject(py::type::of(raised).ptr(), raised.ptr());
}

}  // namespace

Waker::Waker() : fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (fd_ < 0) throw Error(ErrorCode::kOutOfMemory, "no file descriptor is left");
}
Waker::~Waker() { close(fd_); }
void Waker::wake() noexcept { (void)!eventfd_write(fd_, 1); }
void Waker::clear() noexcept {
  eventfd_t count = 0;
  (void)!eventfd_read(fd_, &count);
}

void Inbox::put(GenerationEvent&& event) {
  if (event.error) return put(std::make_exception_ptr(*event.error));
  add(std::move(event));
}
void Inbox::put(std::exception_ptr error) { add(std::move(error)); }

void Inbox::add(Item item) {
  {
    const std::lock_guard lock(mutex_);
    items_.push_back(std::move(item));
  }
  arrived_.notify_one();
  if (waker_) waker_->wake();
}

void Inbox::wait_for_one() {
  for (;;) {
    {
      const py::gil_scoped_release release;
      std::unique_lock lock(mutex_);
      if (arrived_.wait_for(lock, std::chrono::milliseconds(100), [&] { return !items_.empty(); })) return;
    }
    if (PyErr_CheckSignals() != 0) throw py::error_already_set();
  }
}

py::list Inbox::take(bool wait) {
  if (wait) wait_for_one();
  std::deque<Item> items;
  {
    const std::lock_guard lock(mutex_);
    items.swap(items_);
  }
  py::list events;
  for (Item& item : items) {
    if (const auto* event = std::get_if<GenerationEvent>(&item)) {
      events.append(event_tuple(*event));
    } else if (events.empty()) {
      std::rethrow_exception(std::get<std::exception_ptr>(item));
    } else {
      add(std::move(item));  // the last one; told when the events are taken
    }
  }
  return events;
}

void refuse_value(const std::string& name, py::handle value) {
  constexpr size_t kShown = 100;
  throw py::type_error(name + ": " + py::cast<std::string>(py::repr(value)).substr(0, kShown) +
                       " is not what is expected there");
}

void set_sampling(const py::dict& options, SamplingParams& params) { set_fields(options, sampling_setters(), params); }

void add_common(py::module_& module) {
  py::class_<Waker, std::shared_ptr<Waker>>(module, "Waker", py::module_local())
      .def(py::init<>())
      .def("fileno", &Waker::fileno)
      .def("clear", &Waker::clear);
  py::register_local_exception_translator([](std::exception_ptr pointer) {
    try {
      std::rethrow_exception(pointer);
    } catch (const ContextLengthError& error) {
      raise(error, "context_length");
    } catch (const Error& error) {
      raise(error, std::string(error_code_name(error.code())));
    }
  });
}

}  // namespace headrace::python
