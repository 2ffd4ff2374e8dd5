// headrace serve: the OpenAI API over HTTP, and the gRPC service.
#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <future>

#include "apps/commands.h"
#include "apps/cpu_list.h"
#include "apps/end_signals.h"
#include "apps/load_flags.h"
#include "apps/serve_flags.h"
#include "apps/step_faults.h"
#include "files/json_file.h"
#include "sched/step_timeline.h"
#include "server/server.h"

namespace headrace {
namespace {

using server::Server;

std::string figures_text(const Model& model) {
  return fmt::format("{}: sequences of up to {} tokens, KV cache for {} tokens", model.name(), model.max_model_len(),
                     model.kv_cache_tokens());
}

void warn_of_open_door(const ServeSettings& s, server::RequestLog& log) {
  const bool is_local =
      s.serve.http.host.starts_with("127.") || s.serve.http.host == "::1" || s.serve.http.host == "localhost";
  if (!is_local && s.serve.api_key_file.empty()) {
    log.note("anyone who reaches this address may use the model: --api-key-file asks for keys");
  }
}

std::unique_ptr<Model> load(const ServeSettings& s, Server& server) {
  LoadOptions options = s.load;
  auto line = show_loading(s.model, options);
  options.on_progress = [shown = options.on_progress, &server](double share) {
    server.context().state.set_load_progress(share);
    shown(share);
  };
  if (const auto faults = step_faults_of_environment()) {
    server.context().log.note("steps are slowed down or fail, as HEADRACE_TEST_... asks");
    options.fault_injection = fault_injection(*faults);
  }
  return std::make_unique<Model>(Model::load(s.model, options));
}

void end_timeline() {
  if (const auto timeline = step_timeline()) timeline->close();
}

/// Loads while the server answers that it does. nullptr: a signal came first.
std::unique_ptr<Model> load_or_leave(const ServeSettings& s, Server& server, const EndSignals& signals) {
  std::future<std::unique_ptr<Model>> loading = std::async(std::launch::async, [&] { return load(s, server); });
  while (loading.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
    if (signals.wait(std::chrono::milliseconds(20))) {
      server.context().log.note("stopped while the model was being loaded");
      end_timeline();
      std::fflush(nullptr);
      std::_Exit(0);  // loading cannot be interrupted, and nothing has to be put away
    }
  }
  return loading.get();
}

}  // namespace

int command_serve(std::span<const std::string> arguments) {
  ServeSettings s;
  const CommandLine command = serve_command_line(s);
  if (command.parse(arguments) == CommandLine::Outcome::kHelp) {
    std::fputs(command.help().c_str(), stdout);
    return 0;
  }
  if (!s.file.config.empty()) {
    read_head_part(s);
    (void)command.parse(arguments);  // flags count more than the file
  }
  if (s.model.empty()) {
    throw Error(ErrorCode::kInvalidArgument,
                "MODEL is missing: name it, or a file by --config (headrace serve --help lists the flags)");
  }
  bind_to_cpus(s.cpu_list);
  if (!s.template_file.empty()) s.load.chat_template = read_text_file(s.template_file);
  s.serve.http.port = static_cast<uint16_t>(s.port);
  s.serve.max_queued_requests = s.load.max_queued_requests;
  if (s.load.max_num_seqs > 0) s.serve.max_num_seqs = s.load.max_num_seqs;
  if (s.grpc_port >= 0) s.serve.grpc_port = static_cast<uint16_t>(s.grpc_port);
  if (s.allow_terminate) s.serve.terminate = [] { kill(getpid(), SIGTERM); };
  s.serve.version = HR_VERSION;
  s.serve.numerics = s.load.numerics;
  s.load.cluster = s.cluster.parsed();
  if (s.load.cluster.is_used()) setenv("HEADRACE_LOG", "info", 0);  // how machines are joined

  const auto begin = std::chrono::steady_clock::now();
  const EndSignals signals;
  EndGuard end(signals);
  if (!s.trace.empty()) set_step_timeline(std::make_shared<StepTimeline>(s.trace));
  Server server(s.serve);
  server::RequestLog& log = server.context().log;
  log.note(fmt::format("listening on {}://{}:{}", s.serve.http.tls_certificate.empty() ? "http" : "https",
                       s.serve.http.host, server.port()));
  if (server.grpc_port() != 0) log.note(fmt::format("gRPC on {}:{}", s.serve.http.host, server.grpc_port()));
  warn_of_open_door(s, log);
  std::unique_ptr<Model> model = load_or_leave(s, server, signals);
  log.note(figures_text(*model));
  if (s.dry_run) {
    log.note("dry run: all is well");
    return 0;
  }
  server.context().state.set_ready(std::move(model));
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
  log.note(fmt::format("ready after {:.1f} s", taken.count()));

  while (!signals.wait(std::chrono::hours(1))) {
  }
  end.begin();
  log.note("draining: no new requests are taken");
  const bool all = server.drain([&] { return end.is_urgent(); });
  if (!all) end.hurry();  // a step may hang for long
  end_timeline();
  log.note(all ? "ended: all requests were answered" : "ended: requests that still ran were cut off");
  return 0;
}

}  // namespace headrace
