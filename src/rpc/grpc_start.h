#pragma once

namespace headrace::rpc {

/// To be called before anything of gRPC is made. Keeps it from writing to standard error what errors say anyway, unless
/// GRPC_VERBOSITY is set, and keeps its threads for the life of the process.
void start_grpc();

}  // namespace headrace::rpc
