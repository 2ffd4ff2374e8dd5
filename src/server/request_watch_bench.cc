// What RequestWatch::event costs for each token.
#include <chrono>
#include <cstdio>

#include "server/metrics.h"
#include "server/request_log.h"
#include "server/request_watch.h"

int main() {
  using namespace headrace;
  using namespace headrace::server;
  constexpr int kEvents = 2'000'000;
  Metrics metrics({"vllm"});
  RequestLog log(RequestLog::Format::kText, false);
  Exchange exchange;
  exchange.request.arrived = std::chrono::steady_clock::now();
  GenerationEvent event;
  event.tokens = {1};
  for (int round = 0; round < 5; ++round) {
    RequestWatch watch(metrics, log, nullptr, exchange, {});
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < kEvents; ++i) watch.event(0, event);
    const std::chrono::duration<double, std::nano> passed = std::chrono::steady_clock::now() - begin;
    std::printf("%.1f ns an event\n", passed.count() / kEvents);
    watch.end(Outcome::kStop, 200);
  }
}
