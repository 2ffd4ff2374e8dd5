// headrace bench serve: a load on a server with the OpenAI API, and what its clients saw.
#include "apps/bench_serve.h"

#include <cstdio>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>

#include "apps/bench_serve_flags.h"
#include "apps/commands.h"
#include "apps/interrupt.h"
#include "base/cat.h"
#include "base/error.h"
#include "base/progress.h"
#include "client/answer_diff.h"
#include "client/serve_report.h"

namespace headrace {
namespace {

std::string date_text() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  char text[32];
  std::strftime(text, sizeof text, "%Y%m%d-%H%M%S", &local);
  return text;
}

/// A file to write when all is done: a path that cannot be written is found before the load runs.
class LateFile {
 public:
  explicit LateFile(std::string path) : path_(std::move(path)) {
    if (path_.empty()) return;
    out_.open(path_, std::ios::binary | std::ios::app);
    if (!out_) throw Error(ErrorCode::kInvalidArgument, cat(printable(path_), ": cannot be written"));
  }
  void write(std::string_view text) {
    if (path_.empty()) return;
    out_.close();
    out_.open(path_, std::ios::binary | std::ios::trunc);
    out_ << text;
    out_.close();
    if (!out_) throw Error(ErrorCode::kUnavailable, cat(printable(path_), ": could not be written to the end"));
  }

 private:
  std::string path_;
  std::ofstream out_;
};

/// Shows one line for each phase.
class Phases {
 public:
  void show(std::string_view what, size_t done, size_t total) {
    if (what != what_ || done < done_) {
      line_.reset();
      what_ = what;
      line_ =
          std::make_unique<ProgressLine>(what_, static_cast<double>(std::max<size_t>(total, 1)), ProgressUnit::kShare);
    }
    done_ = done;
    line_->update(static_cast<double>(done));
  }

 private:
  std::string what_;
  size_t done_ = 0;
  std::unique_ptr<ProgressLine> line_;
};

std::string json_text(const nlohmann::ordered_json& json, int indent) {
  return json.dump(indent, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + '\n';
}

std::string requests_text(const std::vector<client::RequestRecord>& records) {
  std::string text;
  for (const client::RequestRecord& record : records) text += json_text(client::record_json(record), -1);
  return text;
}

}  // namespace

int command_bench_serve(std::span<const std::string> arguments) {
  ServeBenchSettings settings;
  const CommandLine command(
      "headrace bench serve",
      "Sends a load to a server with the OpenAI API and reports latencies and throughput as its clients see them. "
      "Names "
      "of flags and figures are those of `vllm bench serve` where they mean the same.",
      {}, serve_bench_flags(settings),
      "What each figure means: docs/benchmarking.md. Ctrl-C ends the load and reports what has finished.");
  if (command.parse(arguments) == CommandLine::Outcome::kHelp) {
    std::fputs(command.help().c_str(), stdout);
    return 0;
  }
  client::ServeBenchSpec spec = serve_bench_spec(settings);
  const client::ReportHead head{
      .date = date_text(), .client = version_text(), .metadata = settings.metadata, .shown = shown_metrics(settings)};
  std::vector<client::RequestRecord> earlier;
  if (!settings.compare.empty()) earlier = client::read_records(settings.compare);
  const std::filesystem::path name =
      settings.result_filename.empty() ? cat("serve-", head.date, ".json") : settings.result_filename;
  const bool saves = settings.save_result || !settings.result_filename.empty();
  LateFile report(saves ? (std::filesystem::path(settings.result_dir) / name).string() : "");
  LateFile requests(settings.save_requests), page(settings.html);

  const InterruptGuard guard;
  auto phases = std::make_unique<Phases>();
  spec.stop = [&] { return guard.interrupted(); };
  spec.progress = [&](std::string_view what, size_t done, size_t total) { phases->show(what, done, total); };
  const client::ServeBenchResult result = client::run_serve_bench(spec);
  phases.reset();

  const nlohmann::ordered_json json = client::report_json(spec, result, head);
  std::fputs((settings.output == "json" ? json_text(json, 1) : client::report_markdown(spec, result, head)).c_str(),
             stdout);
  report.write(json_text(json, 1));
  page.write(client::report_html(spec, result, head));
  const std::vector<client::RequestRecord>& records = result.runs.back().load.records;
  requests.write(requests_text(records));
  if (!settings.compare.empty()) {
    std::fputs(client::diff_text(client::compare_answers(earlier, records)).c_str(), stdout);
  }
  return result.interrupted ? 130 : 0;
}

int command_bench_diff(std::span<const std::string> arguments) {
  std::string first, second;
  const CommandLine command("headrace bench diff",
                            "Compares the answers of two runs of the same requests, as `headrace bench serve "
                            "--save-requests` writes them. The exit code is 2 where they differ.",
                            {{.name = "A", .target = &first, .help = "file of one run"},
                             {.name = "B", .target = &second, .help = "file of the other"}},
                            {});
  if (command.parse(arguments) == CommandLine::Outcome::kHelp) {
    std::fputs(command.help().c_str(), stdout);
    return 0;
  }
  const client::AnswerDiff diff = client::compare_answers(client::read_records(first), client::read_records(second));
  std::fputs(client::diff_text(diff).c_str(), stdout);
  return diff.differences.empty() && diff.only_in_one == 0 ? 0 : 2;
}

}  // namespace headrace
