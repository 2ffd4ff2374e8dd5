#include "rpc/grpc_start.h"

#include <google/protobuf/stubs/logging.h>
#include <grpc/support/log.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <cstdlib>

namespace headrace::rpc {
namespace {

void be_quiet() {
  if (std::getenv("GRPC_VERBOSITY") != nullptr) return;
  gpr_set_log_function([](gpr_log_func_args*) {});
  google::protobuf::SetLogHandler(nullptr);
}

/// gRPC 1.51 ends the threads of its callbacks with the last client or server, and may abort over it ("prior > 0",
/// about one time in a hundred). A server without an address, which is never ended, keeps them.
void keep_threads() {
  static auto* const service = new grpc::CallbackGenericService();
  grpc::ServerBuilder builder;
  builder.RegisterCallbackGenericService(service);
  static auto* const server = builder.BuildAndStart().release();
  static_cast<void>(server);
}

}  // namespace

void start_grpc() {
  static const bool started = (be_quiet(), keep_threads(), true);
  static_cast<void>(started);
}

}  // namespace headrace::rpc
