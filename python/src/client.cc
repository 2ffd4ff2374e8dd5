// headrace._client: servers, by gRPC. In C++, so that no version of grpcio or protobuf has to fit: the build that made
// the server made its client.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "headrace/v1/generation.pb.h"
#include "python/src/native.h"
#include "rpc/call_error.h"
#include "rpc/generation_client.h"

namespace headrace::python {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

void fill(Message& message, const py::dict& values);

/// Sets a field, or adds to a repeated one.
void put(Message& message, const FieldDescriptor& field, py::handle value) {
  const Reflection& r = *message.GetReflection();
  const bool many = field.is_repeated();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return many ? r.AddInt32(&message, &field, py::cast<int32_t>(value))
                  : r.SetInt32(&message, &field, py::cast<int32_t>(value));
    case FieldDescriptor::CPPTYPE_UINT64:
      return r.SetUInt64(&message, &field, py::cast<uint64_t>(value));
    case FieldDescriptor::CPPTYPE_FLOAT:
      return r.SetFloat(&message, &field, py::cast<float>(value));
    case FieldDescriptor::CPPTYPE_BOOL:
      return r.SetBool(&message, &field, py::cast<bool>(value));
    case FieldDescriptor::CPPTYPE_STRING:
      return many ? r.AddString(&message, &field, py::cast<std::string>(value))
                  : r.SetString(&message, &field, py::cast<std::string>(value));
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return fill(many ? *r.AddMessage(&message, &field) : *r.MutableMessage(&message, &field),
                  py::cast<py::dict>(value));
    default:
      throw py::type_error(field.name() + " cannot be set");
  }
}

void fill(Message& message, const py::dict& values) {
  for (const auto& [key, value] : values) {
    const auto name = py::cast<std::string>(key);
    const FieldDescriptor* field = message.GetDescriptor()->FindFieldByName(name);
    if (field == nullptr) throw py::type_error("there is no parameter '" + name + "'");
    try {
      const bool is_text = py::isinstance<py::str>(value) || py::isinstance<py::bytes>(value);
      const bool is_dict = py::isinstance<py::dict>(value);
      if (field->is_map() ? !is_dict : field->is_repeated() && (is_text || !py::isinstance<py::sequence>(value))) {
        refuse_value(name, value);
      }
      if (!field->is_repeated() && field->message_type() != nullptr && !is_dict) refuse_value(name, value);
      if (field->is_map()) {
        for (const auto& [k, v] : py::cast<py::dict>(value)) {
          py::dict entry;
          entry["key"] = k;
          entry["value"] = v;
          put(message, *field, entry);
        }
      } else if (field->is_repeated()) {
        for (const py::handle element : py::cast<py::list>(value)) put(message, *field, element);
      } else {
        put(message, *field, value);
      }
    } catch (const py::cast_error&) {
      refuse_value(name, value);
    }
  }
}

/// A call under way.
class RemoteRequest {
 public:
  RemoteRequest(rpc::GenerationClient& client, const v1::GenerateRequest& request, bool streams, double timeout,
                std::shared_ptr<Waker> waker)
      : inbox_(std::make_shared<Inbox>(std::move(waker))) {
    const py::gil_scoped_release release;
    call_ = client.submit(request, streams, timeout,
                          {.on_event = [inbox = inbox_](GenerationEvent&& event) { inbox->put(std::move(event)); },
                           .on_error = [inbox = inbox_](std::exception_ptr error) { inbox->put(std::move(error)); }});
  }
  py::list take(bool wait) { return inbox_->take(wait); }
  void cancel() {
    const py::gil_scoped_release release;
    call_->cancel();
  }

 private:
  std::shared_ptr<Inbox> inbox_;
  std::shared_ptr<rpc::ClientCall> call_;
};

class RemoteModel {
 public:
  RemoteModel(std::string address, std::string api_key, bool tls, std::string ca_certificates)
      : client_(std::make_unique<rpc::GenerationClient>(
            rpc::ClientOptions{.address = std::move(address),
                               .api_key = std::move(api_key),
                               .tls = tls,
                               .ca_certificates = std::move(ca_certificates)})) {}
  ~RemoteModel() { close(); }
  RemoteModel(const RemoteModel&) = delete;
  RemoteModel& operator=(const RemoteModel&) = delete;

  std::unique_ptr<RemoteRequest> submit(const py::dict& request, double timeout, std::shared_ptr<Waker> waker,
                                        bool streams) {
    v1::GenerateRequest message;
    fill(message, request);
    return std::make_unique<RemoteRequest>(client(), message, streams, timeout, std::move(waker));
  }
  py::dict info(double timeout) {
    v1::ServerInfo info;
    {
      rpc::GenerationClient& asked = client();
      const py::gil_scoped_release release;
      info = asked.server_info(timeout);
    }
    py::dict result;
    result["model"] = info.model();
    result["version"] = info.version();
    result["max_model_len"] = info.max_model_len();
    result["has_chat_template"] = info.has_chat_template();
    result["can_terminate"] = info.can_terminate();
    return result;
  }
  void terminate(double timeout) {
    rpc::GenerationClient& asked = client();
    const py::gil_scoped_release release;
    asked.terminate(timeout);
  }
  void close() {
    const py::gil_scoped_release release;
    client_.reset();
  }

 private:
  rpc::GenerationClient& client() {
    if (!client_) throw Error(ErrorCode::kUnavailable, "this client was closed");
    return *client_;
  }
  std::unique_ptr<rpc::GenerationClient> client_;
};

}  // namespace

PYBIND11_MODULE(_client, m) {
  add_common(m);
  py::register_local_exception_translator([](std::exception_ptr pointer) {
    try {
      std::rethrow_exception(pointer);
    } catch (const rpc::PermissionError& error) {
      const py::object made =
          py::module_::import("headrace._errors").attr("make_error")("permission", error.message(), "", 0, 0);
      PyErr_SetObject(py::type::of(made).ptr(), made.ptr());
    }
  });
  py::class_<RemoteRequest>(m, "Request", py::module_local())
      .def("take", &RemoteRequest::take)
      .def("cancel", &RemoteRequest::cancel);
  py::class_<RemoteModel>(m, "Client", py::module_local())
      .def(py::init<std::string, std::string, bool, std::string>())
      .def("submit", &RemoteModel::submit)
      .def("info", &RemoteModel::info)
      .def("terminate", &RemoteModel::terminate)
      .def("close", &RemoteModel::close);
}

}  // namespace headrace::python
