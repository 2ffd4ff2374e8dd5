#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "cluster/frame.h"

using namespace headrace;
using namespace headrace::cluster;

/// Headers, one after the other as on a connection, each skipping its payload: what decodes must encode to the same
/// bytes and be within its kind's bound.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size);
  while (bytes.size() >= kFrameHeaderBytes) {
    const auto head = bytes.first<kFrameHeaderBytes>();
    const Result<FrameHeader> header = decode_header(head);
    if (!header) return 0;
    const int64_t payload_bytes = header.value().payload_bytes;
    if (payload_bytes < 0 || payload_bytes > max_payload_bytes(header.value().kind)) std::abort();
    const auto again = encode_header(header.value());
    if (!std::equal(again.begin(), again.end(), head.begin())) std::abort();
    bytes = bytes.subspan(kFrameHeaderBytes);
    bytes = bytes.subspan(std::min(bytes.size(), static_cast<size_t>(payload_bytes)));
  }
  return 0;
}
