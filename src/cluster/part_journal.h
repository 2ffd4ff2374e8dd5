#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace headrace::cluster {

/// One line of the journal of a part store: a range is complete, or is so no longer. Encoded little-endian, 16 bytes:
/// magic u32 "HRJ1" | range u32, the top bit set where it is gone | XXH3 of the first 8 bytes, u64.
inline constexpr size_t kJournalRecordBytes = 16;
[[nodiscard]] std::array<std::byte, kJournalRecordBytes> encode_record(uint32_t range, bool is_complete) noexcept;

/// Which of `num_ranges` ranges are complete by a journal that may have been torn anywhere, or hold anything: what is
/// no record is passed over, byte by byte.
[[nodiscard]] std::vector<bool> read_journal(std::span<const std::byte> bytes, size_t num_ranges);

}  // namespace headrace::cluster
