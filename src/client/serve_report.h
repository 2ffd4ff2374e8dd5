#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "client/serve_measurement.h"

namespace headrace::client {

/// What a report tells beside the figures.
struct ReportHead {
  std::string date;                   ///< "20261130-142233", as vllm writes it
  std::string client;                 ///< program and version
  std::vector<std::string> metadata;  ///< "KEY=VALUE", for what only the user knows (link, machine)
  std::vector<std::string> shown{"ttft", "first_text", "itl", "tpot", "tpot_with_first", "e2el"};  ///< table rows
};

/// One run: the result keys of `vllm bench serve`, in milliseconds, then Headrace's own under "headrace".
[[nodiscard]] nlohmann::ordered_json run_json(const ServeBenchSpec& spec, const ServeBenchResult& result,
                                              const ServeRun& run, const ReportHead& head);
/// All runs: that object where there is one run, else {"runs": [...], "best_request_rate": ...}.
[[nodiscard]] nlohmann::ordered_json report_json(const ServeBenchSpec& spec, const ServeBenchResult& result,
                                                 const ReportHead& head);
/// Tables for a terminal or a document.
[[nodiscard]] std::string report_markdown(const ServeBenchSpec& spec, const ServeBenchResult& result,
                                          const ReportHead& head);
/// A page that needs nothing else: tables and curves.
[[nodiscard]] std::string report_html(const ServeBenchSpec& spec, const ServeBenchResult& result,
                                      const ReportHead& head);

/// "8 clients", "2.5 requests/s, at most 8 at once", "all at once"
[[nodiscard]] std::string load_name(const ServeBenchSpec& spec, const ServeRun& run);

/// Latencies in the order in which they are shown.
struct NamedSpread {
  std::string_view key;    ///< "ttft"
  std::string_view title;  ///< "time to first token (TTFT)"
  const Spread* spread;
};
[[nodiscard]] std::vector<NamedSpread> latency_rows(const ServeFigures& figures);

}  // namespace headrace::client
