#include "cluster/frame.h"

#include "base/byte_reader.h"

namespace headrace::cluster {
namespace {

constexpr uint32_t kMagic = 0x46435248;  // "HRCF" in a file's order
constexpr int64_t kMiB = int64_t{1} << 20;

bool is_kind(uint8_t kind) {
  return kind >= static_cast<uint8_t>(FrameKind::kMessage) && kind <= static_cast<uint8_t>(FrameKind::kHeartbeat);
}

}  // namespace

int64_t max_payload_bytes(FrameKind kind) noexcept {
  switch (kind) {
    case FrameKind::kMessage:
      return 16 * kMiB;
    case FrameKind::kPlan:
      return 64 * kMiB;
    case FrameKind::kActivations:  // 16384 rows of width 16384 in f32
    case FrameKind::kResult:       // 1024 rows of logits over 262144 tokens
      return 1024 * kMiB + kMiB;
    case FrameKind::kBytes:
      return 64 * kMiB;
    case FrameKind::kHeartbeat:
      return 0;
  }
  return 0;
}

std::array<std::byte, kFrameHeaderBytes> encode_header(const FrameHeader& header) noexcept {
  std::array<std::byte, kFrameHeaderBytes> bytes{};
  store_le(bytes.data(), kMagic);
  store_le(bytes.data() + 4, kProtocolVersion);
  store_le(bytes.data() + 6, static_cast<uint8_t>(header.kind));
  store_le(bytes.data() + 8, raw(header.epoch));
  store_le(bytes.data() + 16, header.id);
  store_le(bytes.data() + 24, static_cast<uint64_t>(header.payload_bytes));
  return bytes;
}

Result<FrameHeader> decode_header(std::span<const std::byte, kFrameHeaderBytes> bytes) {
  ByteReader in(bytes);
  if (in.take<uint32_t>() != kMagic) return Error(ErrorCode::kCorrupt, "not a frame of Headrace's cluster protocol");
  const uint16_t version = in.take<uint16_t>();
  if (version != kProtocolVersion) {
    return Error(ErrorCode::kUnsupported, cat("cluster protocol version ", version, ", this build speaks version ",
                                              kProtocolVersion, "; run the same build on all machines"));
  }
  const uint8_t kind = in.take<uint8_t>();
  if (!is_kind(kind))
    return Error(ErrorCode::kCorrupt, cat("frame of kind ", uint32_t{kind}, ", which does not exist"));
  FrameHeader header{.kind = FrameKind{kind}};
  const uint8_t zero = in.take<uint8_t>();
  header.epoch = EpochId{in.take<uint32_t>()};
  const uint32_t zeros = in.take<uint32_t>();
  if (zero != 0 || zeros != 0) return Error(ErrorCode::kCorrupt, "frame header: padding is not zero");
  header.id = in.take<uint64_t>();
  const uint64_t payload_bytes = in.take<uint64_t>();
  const auto most = static_cast<uint64_t>(max_payload_bytes(header.kind));
  if (payload_bytes > most) {
    return Error(ErrorCode::kCorrupt,
                 cat("frame of kind ", uint32_t{kind}, " with ", payload_bytes, " bytes, expected at most ", most));
  }
  header.payload_bytes = static_cast<int64_t>(payload_bytes);
  return header;
}

}  // namespace headrace::cluster
