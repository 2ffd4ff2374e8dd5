#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "client/bench_data.h"
#include "client/openai_target.h"
#include "client/request_record.h"

namespace headrace::client {

struct LoadRunOptions {
  std::span<const double> arrivals;  ///< of each prompt, ascending, seconds
  int64_t max_concurrency = 0;       ///< clients: no more requests are out at once; 0: no limit
  std::string cache_salt;            ///< field of each request; may be empty
  std::function<bool()> stop;        ///< asked often; true: give up what is out and send no more
  std::function<void(size_t ended)> progress;
};

struct LoadRun {
  std::vector<RequestRecord> records;  ///< of all requests that were sent, by index
  bool stopped = false;                ///< before all was sent and answered
  int64_t not_sent = 0;                ///< because of that
  double duration = 0;                 ///< from the start to the end of the last request, failed ones included
  int64_t max_concurrency = 0;
  // What the client itself cost; it may share its processors with the server.
  double cpu_seconds = 0;           ///< of this process, all threads
  double longest_turn_seconds = 0;  ///< between two looks at the sockets: a bound for how late a time stamp can be
};

/// Sends all prompts and reads the answers, on this thread.
[[nodiscard]] LoadRun run_load(HttpClient& client, const OpenAiTarget& target, std::span<const BenchPrompt> prompts,
                               const LoadRunOptions& options);

}  // namespace headrace::client
