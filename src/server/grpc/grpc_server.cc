#include "server/grpc_server.h"

#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <algorithm>
#include <limits>

#include "base/cat.h"
#include "base/error.h"
#include "files/json_file.h"
#include "rpc/grpc_start.h"
#include "server/grpc/grpc_call.h"

namespace headrace::server {
namespace {

// Streams without traffic are asked whether somebody is there, so that a machine that vanished frees what it held.
constexpr int kKeepaliveMs = 60'000, kKeepaliveTimeoutMs = 20'000;

std::shared_ptr<grpc::ServerCredentials> credentials_of(const HttpOptions& options) {
  if (options.tls_certificate.empty()) return grpc::InsecureServerCredentials();
  // HTTP, which has listened already, has checked the files.
  grpc::SslServerCredentialsOptions tls;
  tls.pem_key_cert_pairs.push_back({read_text_file(options.tls_key), read_text_file(options.tls_certificate)});
  return grpc::SslServerCredentials(tls);
}

std::string address_of(const HttpOptions& options) {
  const bool is_v6 = options.host.find(':') != std::string::npos && !options.host.starts_with('[');
  return is_v6 ? cat("[", options.host, "]:", options.port) : cat(options.host, ":", options.port);
}

int as_int(int64_t value) { return static_cast<int>(std::clamp<int64_t>(value, 0, std::numeric_limits<int>::max())); }

class Calls final : public grpc::CallbackGenericService {
 public:
  explicit Calls(CallHost& host) : host_(host) {}
  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext* context) override {
    return new CallReactor(host_, *context);
  }

 private:
  CallHost& host_;
};

}  // namespace

class GrpcServer::Impl {
 public:
  Impl(const HttpOptions& options, HttpHandler handler) : calls_(host_) {
    rpc::start_grpc();
    host_.options = options;
    host_.handler = std::move(handler);
    const std::string address = address_of(options);
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort(address, credentials_of(options), &port);
    builder.RegisterCallbackGenericService(&calls_);
    builder.SetMaxReceiveMessageSize(as_int(options.max_body_bytes));
    builder.AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, as_int(options.max_header_bytes));
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMs);
    builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMs);
    // A small message could become a large one.
    builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_DEFLATE, false);
    builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_GZIP, false);
    server_ = builder.BuildAndStart();
    if (!server_ || port == 0) {
      throw Error(ErrorCode::kUnavailable,
                  cat("cannot listen on ", address,
                      " for gRPC: no such address, or it is in use; take another --grpc-port or --host"));
    }
    port_ = static_cast<uint16_t>(port);
  }

  ~Impl() {
    server_->Shutdown(std::chrono::system_clock::now());
    server_->Wait();
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  [[nodiscard]] uint16_t port() const noexcept { return port_; }
  [[nodiscard]] int64_t open_calls() const noexcept { return host_.open_calls; }

 private:
  CallHost host_;
  Calls calls_;
  std::unique_ptr<grpc::Server> server_;
  uint16_t port_ = 0;
};

GrpcServer::GrpcServer(const HttpOptions& options, HttpHandler handler)
    : impl_(std::make_unique<Impl>(options, std::move(handler))) {}
GrpcServer::~GrpcServer() = default;
uint16_t GrpcServer::port() const noexcept { return impl_->port(); }
int64_t GrpcServer::open_calls() const noexcept { return impl_->open_calls(); }

}  // namespace headrace::server
