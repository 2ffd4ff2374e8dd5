#include "cluster/part_journal.h"

#include "base/byte_order.h"
#include "cluster/model_manifest.h"

namespace headrace::cluster {
namespace {

constexpr uint32_t kMagic = 0x314a5248;  // "HRJ1"
constexpr uint32_t kGone = uint32_t{1} << 31;

}  // namespace

std::array<std::byte, kJournalRecordBytes> encode_record(uint32_t range, bool is_complete) noexcept {
  std::array<std::byte, kJournalRecordBytes> record{};
  store_le(record.data(), kMagic);
  store_le(record.data() + 4, is_complete ? range : range | kGone);
  store_le(record.data() + 8, digest_of(std::span(record).first(8)));
  return record;
}

std::vector<bool> read_journal(std::span<const std::byte> bytes, size_t num_ranges) {
  std::vector<bool> complete(num_ranges);
  while (bytes.size() >= kJournalRecordBytes) {
    const bool is_record =
        load_le<uint32_t>(bytes.data()) == kMagic && load_le<uint64_t>(bytes.data() + 8) == digest_of(bytes.first(8));
    if (is_record) {
      const uint32_t value = load_le<uint32_t>(bytes.data() + 4);
      const size_t range = value & ~kGone;
      if (range < num_ranges) complete[range] = (value & kGone) == 0;
    }
    bytes = bytes.subspan(is_record ? kJournalRecordBytes : 1);
  }
  return complete;
}

}  // namespace headrace::cluster
