// In place of grpc/ where the build leaves gRPC out.
#include "base/error.h"
#include "server/grpc_server.h"
#include "server/route.h"

namespace headrace::server {

class GrpcServer::Impl {};

GrpcServer::GrpcServer(const HttpOptions&, HttpHandler) {
  throw Error(ErrorCode::kUnsupported, "--grpc-port: this build has no gRPC; configure it with -DHR_GRPC=ON");
}
GrpcServer::~GrpcServer() = default;
uint16_t GrpcServer::port() const noexcept { return 0; }
int64_t GrpcServer::open_calls() const noexcept { return 0; }

std::span<const Route> grpc_routes() noexcept { return {}; }

}  // namespace headrace::server
