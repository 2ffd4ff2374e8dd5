#include "cluster/frame.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/byte_order.h"

namespace headrace::cluster {
namespace {

using Bytes = std::array<std::byte, kFrameHeaderBytes>;

FrameHeader random_header() {
  FrameHeader header;
  header.kind = FrameKind{*rc::gen::inRange<uint8_t>(1, 7)};
  header.epoch = EpochId{*rc::gen::arbitrary<uint32_t>()};
  header.id = *rc::gen::arbitrary<uint64_t>();
  header.payload_bytes = *rc::gen::inRange<int64_t>(0, max_payload_bytes(header.kind) + 1);
  return header;
}

RC_GTEST_PROP(Frame, HeadersRoundTrip, ()) {
  const FrameHeader header = random_header();
  const Result<FrameHeader> back = decode_header(encode_header(header));
  RC_ASSERT(back.ok());
  RC_ASSERT(back.value() == header);
}

/// Of the bytes that are the same in every header, none may have another value.
RC_GTEST_PROP(Frame, RefusesAnyOtherFixedByte, ()) {
  Bytes bytes = encode_header(random_header());
  constexpr std::array<size_t, 11> kFixed{0, 1, 2, 3, 4, 5, 7, 12, 13, 14, 15};
  const size_t at = kFixed[*rc::gen::inRange<size_t>(0, kFixed.size())];
  bytes[at] ^= std::byte{*rc::gen::inRange<uint8_t>(1, 255)};
  RC_ASSERT(!decode_header(bytes).ok());
}

TEST(Frame, OtherVersionIsNamedWithOurs) {
  Bytes bytes = encode_header({});
  store_le(bytes.data() + 4, uint16_t{77});
  const Result<FrameHeader> header = decode_header(bytes);
  ASSERT_FALSE(header.ok());
  EXPECT_EQ(header.error().code(), ErrorCode::kUnsupported);
  EXPECT_NE(header.error().message().find("version 77"), std::string::npos);
  EXPECT_NE(header.error().message().find(cat("version ", kProtocolVersion)), std::string::npos);
}

TEST(Frame, RefusesWhatIsTooLongForItsKind) {
  for (uint8_t kind = 1; kind <= 6; ++kind) {
    FrameHeader header{.kind = FrameKind{kind}, .payload_bytes = max_payload_bytes(FrameKind{kind})};
    EXPECT_TRUE(decode_header(encode_header(header)).ok());
    ++header.payload_bytes;
    EXPECT_FALSE(decode_header(encode_header(header)).ok());
    header.payload_bytes = -1;
    EXPECT_FALSE(decode_header(encode_header(header)).ok());
  }
}

TEST(Frame, RefusesKindsThatDoNotExist) {
  for (const int kind : {0, 7, 255}) {
    Bytes bytes = encode_header({});
    bytes[6] = static_cast<std::byte>(kind);
    EXPECT_FALSE(decode_header(bytes).ok()) << kind;
  }
}

}  // namespace
}  // namespace headrace::cluster
