#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>

#include "headrace/generation.h"

namespace headrace::v1 {
class GenerateRequest;
class ServerInfo;
}  // namespace headrace::v1

namespace headrace::rpc {

struct ClientOptions {
  std::string address;               ///< "HOST:PORT"
  std::string api_key = {};          ///< empty: none is sent
  bool tls = false;                  ///< the server speaks TLS
  std::string ca_certificates = {};  ///< PEM of whom to trust with it; empty: whom this machine trusts
};

/// Receives a call's events in their order, then nothing more after the event that is last, or after its failure.
/// From gRPC's threads: it must return at once and not throw.
struct CallSink {
  EventSink on_event;
  std::function<void(std::exception_ptr)> on_error;  ///< of what call_error() makes
};

/// A call under way.
class ClientCall {
 public:
  ClientCall() = default;
  ClientCall(const ClientCall&) = delete;
  ClientCall& operator=(const ClientCall&) = delete;
  virtual ~ClientCall() = default;
  /// Ends it early: the sink gets a last event with kCancelled, unless the call has ended already. Any thread.
  virtual void cancel() = 0;
};

/// A client of the service headrace.v1.Generation. Threading: every function from any thread.
class GenerationClient {
 public:
  /// Does not connect yet. Throws Error for a key that no metadata can carry.
  explicit GenerationClient(ClientOptions options);
  /// Cancels what is under way, and waits for its end.
  ~GenerationClient();
  GenerationClient(const GenerationClient&) = delete;
  GenerationClient& operator=(const GenerationClient&) = delete;

  /// Begins a call and returns at once. `streams`: events come as text does, else all at the end.
  [[nodiscard]] std::shared_ptr<ClientCall> submit(const v1::GenerateRequest& request, bool streams,
                                                   double timeout_seconds, CallSink sink);
  /// Throws what call_error() makes, kUnavailable until the server's model is there.
  [[nodiscard]] v1::ServerInfo server_info(double timeout_seconds);
  /// Ends the server. Throws as server_info() does.
  void terminate(double timeout_seconds);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace headrace::rpc
