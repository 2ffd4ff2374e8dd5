#include "cluster/rank_orders.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cluster/control_messages.h"
#include "cluster/message.h"
#include "cluster/message_fields.h"

namespace headrace::cluster {
namespace {

constexpr size_t kMostOrderBytes = 1 << 16;
constexpr size_t kMostPathBytes = 4096;
/// A report is JSON, with spaces behind it.
constexpr size_t kReportBytes = 2048;
/// Of an error's text; each may take six in JSON.
constexpr size_t kMostReasonBytes = 300;
constexpr int64_t kMostBytes = int64_t{1} << 50;

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

void throw_fault(const RankRing& ring) {
  if (ring.fault()) throw *ring.fault();
}

void give(RankRing& ring, const nlohmann::json& order) {
  ring.give_order(bytes_of(order.dump()));
  throw_fault(ring);
}

nlohmann::json take(RankRing& ring) {
  std::vector<std::byte> order;
  (void)ring.take_order(order, kMostOrderBytes);
  throw_fault(ring);
  Result<nlohmann::json> json = parse_message("rank 0", order);
  if (!json) throw json.error();
  return std::move(json).value();
}

/// Room for the reports of all ranks.
struct Reports {
  explicit Reports(int32_t ranks) : bytes(kReportBytes * static_cast<size_t>(ranks), std::byte{' '}) {
    for (size_t begin = 0; begin < bytes.size(); begin += kReportBytes) {
      blocks.push_back(std::span(bytes).subspan(begin, kReportBytes));
    }
  }
  std::vector<std::byte> bytes;
  std::vector<std::span<std::byte>> blocks;
};

}  // namespace

void send_setup(RankRing& ring, const RankSetup& setup) {
  give(ring, {{"path", setup.path},
              {"isa", isa_name(setup.isa)},
              {"threads", setup.threads},
              {"rules", to_json(setup.rules)}});
}

RankSetup receive_setup(RankRing& ring) {
  const nlohmann::json json = take(ring);
  return {.path = read_text(json, "path", kMostPathBytes),
          .isa = choose_isa(read_text(json, "isa", 16)),
          .threads = static_cast<int>(read_integer(json, "threads", 1, 1 << 16)),
          .rules = read_compute_rules(read_object(json, "rules"))};
}

void send_stage_rules(RankRing& ring, const StageRules& rules) { give(ring, to_json(rules)); }

StageRules receive_stage_rules(RankRing& ring, const ArchSpec& spec) { return read_stage_rules(take(ring), spec); }

void send_report(RankRing& ring, const Result<RankBytes>& report) {
  Reports reports(ring.place().ranks);
  const nlohmann::json json =
      report.ok() ? nlohmann::json{{"packed", report.value().packed}, {"file", report.value().file}}
                  : error_message({report.error().code(), printable(report.error().message(), kMostReasonBytes)});
  std::ranges::copy(bytes_of(json.dump()), reports.blocks[static_cast<size_t>(ring.place().rank)].begin());
  ring.gather(reports.blocks, true);
  throw_fault(ring);
}

RankBytes receive_reports(RankRing& ring) {
  Reports reports(ring.place().ranks);
  ring.gather(reports.blocks, true);
  throw_fault(ring);
  RankBytes sum;
  for (int32_t rank = 1; rank < ring.place().ranks; ++rank) {
    const Result<nlohmann::json> json = parse_message(cat("rank ", rank), reports.blocks[static_cast<size_t>(rank)]);
    if (!json) throw json.error();
    sum += {.packed = read_integer(json.value(), "packed", 0, kMostBytes),
            .file = read_integer(json.value(), "file", 0, kMostBytes)};
  }
  return sum;
}

}  // namespace headrace::cluster
