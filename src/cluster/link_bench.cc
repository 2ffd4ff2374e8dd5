// What a link costs: throughput of large frames, and CPU time for a frame of activations, both sides on the loopback
// interface of one machine.
//   link_bench [CERTIFICATE KEY AUTHORITY]
#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <future>
#include <thread>

#include "cluster/activation_codec.h"
#include "cluster/link.h"

using namespace headrace;
using namespace headrace::cluster;

namespace {

constexpr double kSeconds = 1.5;
constexpr int kRounds = 3;

using Clock = std::chrono::steady_clock;

double thread_cpu_seconds() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

struct Ends {
  std::unique_ptr<Link> from, to;
};

Ends connect(const TlsFiles& tls) {
  const auto listener = listen_tcp("127.0.0.1:0", tls);
  auto from = std::async(std::launch::async, [&] {
    return make_tcp_network(tls)->connect(cat("127.0.0.1:", listener->port()), after(10)).value();
  });
  Ends ends;
  ends.to = listener->accept(after(10)).value();
  ends.from = from.get();
  return ends;
}

struct Cost {
  double frames_per_s = 0, send_cpu_s = 0, receive_cpu_s = 0;  ///< CPU seconds for a frame
};

/// Frames of `bytes`, one after the other as fast as they go.
Cost stream(const TlsFiles& tls, size_t bytes) {
  const Ends ends = connect(tls);
  Cost cost;
  int64_t sent = 0;
  const auto begin = Clock::now();
  std::thread sender([&] {
    const std::vector<std::byte> data(bytes);
    const std::array parts{std::span<const std::byte>(data)};
    const double cpu = thread_cpu_seconds();
    const Deadline end = after(kSeconds);
    while (Clock::now() < end && ends.from->send({.kind = FrameKind::kBytes}, parts, after(10))) ++sent;
    cost.send_cpu_s = (thread_cpu_seconds() - cpu) / static_cast<double>(sent);
    ends.from->close();
  });
  std::vector<std::byte> payload;
  const double cpu = thread_cpu_seconds();
  int64_t received = 0;
  while (ends.to->receive(payload, after(10))) ++received;
  cost.receive_cpu_s = (thread_cpu_seconds() - cpu) / static_cast<double>(received);
  cost.frames_per_s = static_cast<double>(received) / std::chrono::duration<double>(Clock::now() - begin).count();
  sender.join();
  return cost;
}

/// One frame at a time, there and back: how activations of decode steps travel.
Cost ping_pong(const TlsFiles& tls, size_t bytes) {
  const Ends ends = connect(tls);
  Cost cost;
  const auto move = [bytes](Link& link, bool first, int64_t& rounds) {
    const std::vector<std::byte> data(bytes);
    const std::array parts{std::span<const std::byte>(data)};
    std::vector<std::byte> payload;
    const double cpu = thread_cpu_seconds();
    const Deadline end = after(kSeconds);
    while (true) {
      if (first && (Clock::now() >= end || !link.send({.kind = FrameKind::kBytes}, parts, after(10)))) break;
      if (!link.receive(payload, after(10))) break;
      if (!first && !link.send({.kind = FrameKind::kBytes}, parts, after(10))) break;
      ++rounds;
    }
    link.close();
    return (thread_cpu_seconds() - cpu) / static_cast<double>(rounds);
  };
  int64_t near_rounds = 0, far_rounds = 0;
  auto far = std::async(std::launch::async, [&] { return move(*ends.to, false, far_rounds); });
  const auto begin = Clock::now();
  cost.send_cpu_s = move(*ends.from, true, near_rounds);
  cost.frames_per_s =
      2 * static_cast<double>(near_rounds) / std::chrono::duration<double>(Clock::now() - begin).count();
  cost.receive_cpu_s = far.get();
  return cost;
}

template <class Measure>
Cost median(const Measure& measure) {
  std::array<Cost, kRounds> costs;
  for (Cost& cost : costs) cost = measure();
  std::sort(costs.begin(), costs.end(), [](const Cost& a, const Cost& b) { return a.frames_per_s < b.frames_per_s; });
  return costs[kRounds / 2];
}

void report(const char* name, const TlsFiles& tls) {
  const Cost large = median([&] { return stream(tls, 1 << 20); });
  std::printf("%-5s 1 MiB frames, one way: %5.2f GB/s, CPU a frame: send %.0f us, receive %.0f us\n", name,
              large.frames_per_s * (1 << 20) * 1e-9, large.send_cpu_s * 1e6, large.receive_cpu_s * 1e6);
  const Cost small = median([&] { return ping_pong(tls, 64 << 10); });
  std::printf("%-5s 64 KiB frames, there and back: %.1f us a frame, CPU of one send and one receive %.1f us\n", name,
              1e6 / small.frames_per_s, (small.send_cpu_s + small.receive_cpu_s) / 2 * 1e6);
}

/// Nanoseconds a number: rows of 4096 floats, 64 KiB as f32.
void report_codec() {
  constexpr int64_t kWidth = 4096;
  std::vector<float> values(4 * kWidth);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 1000) * 0.01f - 4;
  std::vector<float> decoded;
  for (const WireDtype dtype : {WireDtype::kBf16, WireDtype::kF16, WireDtype::kInt8}) {
    std::vector<std::byte> payload;
    std::array<double, 2> best{1, 1};
    double sum = 0;
    for (int round = 0; round < 300; ++round) {
      payload.clear();
      const double begin = thread_cpu_seconds();
      encode_activations(values, kWidth, dtype, payload);
      const double encoded = thread_cpu_seconds();
      sum += decode_activations(payload, 4, kWidth, decoded).value()[static_cast<size_t>(round)];
      const double end = thread_cpu_seconds();
      best = {std::min(best[0], encoded - begin), std::min(best[1], end - encoded)};
    }
    std::printf("%-5s 64 KiB of f32: encode %.1f us, decode %.1f us (sum %.3g)\n",
                std::string(wire_dtype_name(dtype)).c_str(), best[0] * 1e6, best[1] * 1e6, sum);
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    report_codec();
    report("plain", {});
    if (argc == 4) report("TLS", {.certificate = argv[1], .key = argv[2], .authority = argv[3]});
  } catch (const Error& error) {
    std::fprintf(stderr, "link_bench: %s\n", error.what());
    return 1;
  }
  return 0;
}
