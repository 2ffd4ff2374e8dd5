// The methods of the gRPC service headrace.v1.Generation (proto/headrace/v1/generation.proto).
#include "api/chat_prompt.h"
#include "base/cat.h"
#include "headrace/v1/generation.pb.h"
#include "openai/system_messages.h"
#include "rpc/request_message.h"
#include "server/error_reply.h"
#include "server/generation.h"
#include "server/generation_reply.h"
#include "server/grpc/message_sender.h"
#include "server/route.h"

namespace headrace::server {
namespace {

/// Encodes a conversation; a text only where its length has to be known.
void encode_prompt(Request& request, bool text_too, const ServerContext& server) {
  const Model& model = server.model();
  if (const auto* messages = std::get_if<std::vector<Message>>(&request.input)) {
    Conversation conversation{.messages = messages_json(*messages)};
    request.input = openai::with_merged_system_messages(conversation, server.options.merge_system_messages,
                                                        [&] { return model.tokenize(conversation); });
    request.continues_text = false;
  } else if (const auto* text = std::get_if<std::string>(&request.input); text != nullptr && text_too) {
    request.input = model.tokenize(*text, true, true);
    request.continues_text = true;
  }
}

/// Holds prompt and answer together to `max_length`.
void bound_length(Request& request, int32_t max_length) {
  const auto prompt = static_cast<int64_t>(std::get<std::vector<int32_t>>(request.input).size());
  if (max_length <= prompt) {
    throw ParameterError("max_length",
                         cat("max_length: ", max_length, " leaves no room behind a prompt of ", prompt, " tokens"));
  }
  const auto left = static_cast<int32_t>(max_length - prompt);
  int32_t& max_tokens = request.sampling.max_tokens;
  max_tokens = max_tokens > 0 ? std::min(max_tokens, left) : left;
}

/// Until the caller gives up; 0: it does not.
double seconds_left(const HttpRequest& request) {
  if (!request.deadline) return 0;
  const std::chrono::duration<double> left = *request.deadline - std::chrono::steady_clock::now();
  if (left.count() <= 0) throw timed_out("the call's deadline has passed");
  return left.count();
}

Request read_call(const v1::GenerateRequest& message, const HttpRequest& call, const ServerContext& server) {
  if (!message.model().empty()) server.check_model_name(message.model());
  if (message.max_length() < 0) {
    throw ParameterError("max_length", cat("max_length: expected 0 or more, found ", message.max_length()));
  }
  Request request = rpc::read_request(message, server.model().default_params(), server.options.limits);
  request.timeout_seconds = seconds_left(call);
  encode_prompt(request, message.max_length() > 0, server);
  if (message.max_length() > 0) bound_length(request, message.max_length());
  return request;
}

void answer_call(Exchange exchange, ServerContext& server, bool streams) {
  const std::string endpoint = exchange.request.path;
  begin_generation(std::move(exchange), server, endpoint, [&](Exchange& asked) {
    const v1::GenerateRequest message = rpc::parse_request(asked.request.body);
    asked.request.body = {};  // it may be large, and is not needed any more
    std::vector<Request> requests;
    requests.push_back(read_call(message, asked.request, server));
    const SamplingParams& sampling = requests[0].sampling;
    RequestShape shape{.endpoint = endpoint,
                       .choices = sampling.n,
                       .max_tokens = sampling.max_tokens,
                       .stream = streams,
                       .model = message.model()};
    return std::make_shared<GenerationReply>(asked, server, std::move(shape), std::move(requests),
                                             std::make_unique<MessageSender>(asked.responder, streams));
  });
}

void generate(Exchange exchange, ServerContext& server) { answer_call(std::move(exchange), server, false); }
void generate_stream(Exchange exchange, ServerContext& server) { answer_call(std::move(exchange), server, true); }

HttpReply server_info(const Exchange& exchange, ServerContext& server) {
  v1::ServerInfo info;
  info.set_model(server.model_name());
  info.set_version(server.options.version);
  info.set_max_model_len(server.model().max_model_len());
  info.set_has_chat_template(server.model().has_chat_template());
  info.set_can_terminate(server.options.terminate && exchange.caller.is_admin);
  return {.body = info.SerializeAsString()};
}

HttpReply terminate(const Exchange&, ServerContext& server) {
  if (!server.options.terminate) {
    throw StatusError({.status = 403, .type = "permission_error", .code = "terminate_not_allowed"},
                      "no client may end this server: it was started without --allow-terminate");
  }
  server.log.note("a client ends the server");
  server.options.terminate();
  return {.body = v1::TerminateResponse().SerializeAsString()};
}

constexpr Route kRoutes[] = {
    {"POST", "/headrace.v1.Generation/Generate", Access::kUser, true, generate},
    {"POST", "/headrace.v1.Generation/GenerateStream", Access::kUser, true, generate_stream},
    {"POST", "/headrace.v1.Generation/GetServerInfo", Access::kUser, true, server_info},
    {"POST", "/headrace.v1.Generation/Terminate", Access::kAdmin, false, terminate},
};

}  // namespace

std::span<const Route> grpc_routes() noexcept { return kRoutes; }

}  // namespace headrace::server
