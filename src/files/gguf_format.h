#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace headrace {

/// Numbers of the GGUF format (docs/gguf.md of github.com/ggml-org/ggml). A file, all little-endian:
///   magic "GGUF" | version u32 | tensors u64 | metadata pairs u64
///   | pairs: key string, type u32, value
///   | tensor infos: name string, dimensions u32, sizes u64 each (fastest first), type u32, offset u64
///   | padding to the alignment | tensor data, each tensor at its offset, a multiple of the alignment
/// string: length u64, bytes. array: element type u32, count u64, elements.
inline constexpr uint32_t kGgufMagic = 0x46554747;
inline constexpr uint32_t kGgufDefaultAlignment = 32;
inline constexpr uint32_t kGgufMaxDims = 4;

enum class GgufType : uint32_t {
  kUint8 = 0,
  kInt8 = 1,
  kUint16 = 2,
  kInt16 = 3,
  kUint32 = 4,
  kInt32 = 5,
  kFloat32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kUint64 = 10,
  kInt64 = 11,
  kFloat64 = 12,
};
/// "uint32"; "unknown" past the last.
[[nodiscard]] std::string_view gguf_type_name(GgufType type) noexcept;
/// Bytes of a value in the file; nullopt for strings, arrays and unknown types.
[[nodiscard]] std::optional<uint32_t> gguf_type_size(GgufType type) noexcept;

}  // namespace headrace
