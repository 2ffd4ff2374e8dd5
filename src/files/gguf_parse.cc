#include "files/gguf_parse.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

#include "base/byte_order.h"
#include "base/error.h"
#include "files/gguf_format.h"

namespace headrace {
namespace {

constexpr int kMaxArrayDepth = 8;  // no known file nests at all; bounds the recursion
constexpr uint64_t kMaxNameBytes = 65535;
constexpr uint64_t kMinPairBytes = 8 + 4 + 1;            // key length, type, a one-byte value
constexpr uint64_t kMinTensorInfoBytes = 8 + 4 + 4 + 8;  // name length, dimensions, type, offset

/// Walks over a file's bytes; every read is checked. `field` names what is being read, for messages.
class Cursor {
 public:
  Cursor(const std::string& file, std::span<const std::byte> bytes) noexcept : file_(file), bytes_(bytes) {}

  std::string field;

  [[nodiscard]] size_t pos() const noexcept { return pos_; }
  [[nodiscard]] uint64_t left() const noexcept { return bytes_.size() - pos_; }

  [[noreturn]] void fail(std::string_view what, ErrorCode code = ErrorCode::kCorrupt) const {
    throw LoadError(file_, cat(field, ": ", what), code);
  }

  template <class T>
  [[nodiscard]] T read() {
    need(sizeof(T));
    const T value = load_le<T>(bytes_.data() + pos_);
    pos_ += sizeof(T);
    return value;
  }

  [[nodiscard]] std::string_view read_string() {
    const auto size = read<uint64_t>();
    need(size);
    const std::string_view text(reinterpret_cast<const char*>(bytes_.data() + pos_), static_cast<size_t>(size));
    pos_ += text.size();
    return text;
  }

  /// A count of things that take at least `min_bytes` each: checked before anything of that size is allocated.
  [[nodiscard]] size_t read_count(uint64_t min_bytes, std::string_view of_what) {
    const auto count = read<uint64_t>();
    if (count > left() / min_bytes) {
      fail(cat(count, " ", of_what, " at byte ", pos_ - 8, ", more than the remaining ", left(), " bytes can hold"));
    }
    return static_cast<size_t>(count);
  }

 private:
  void need(uint64_t size) const {
    if (size > left())
      fail(cat("needs ", size, " bytes at byte ", pos_, ", but only ", left(), " are left: truncated?"));
  }

  const std::string& file_;
  std::span<const std::byte> bytes_;
  size_t pos_ = 0;
};

bool read_bool(Cursor& in) {
  const auto value = in.read<uint8_t>();
  if (value > 1) in.fail(cat("found the byte ", value, ", expected a bool (0 or 1)"));
  return value == 1;
}

MetaValue from_uint64(uint64_t value) {
  if (value <= static_cast<uint64_t>(Metadata::kMaxInt)) return {static_cast<int64_t>(value)};
  return {value};
}

MetaValue read_scalar(Cursor& in, GgufType type) {
  switch (type) {
    case GgufType::kUint8:
      return {int64_t{in.read<uint8_t>()}};
    case GgufType::kInt8:
      return {int64_t{in.read<int8_t>()}};
    case GgufType::kUint16:
      return {int64_t{in.read<uint16_t>()}};
    case GgufType::kInt16:
      return {int64_t{in.read<int16_t>()}};
    case GgufType::kUint32:
      return {int64_t{in.read<uint32_t>()}};
    case GgufType::kInt32:
      return {int64_t{in.read<int32_t>()}};
    case GgufType::kUint64:
      return from_uint64(in.read<uint64_t>());
    case GgufType::kInt64:
      return {in.read<int64_t>()};
    case GgufType::kFloat32:
      return {double{in.read<float>()}};
    case GgufType::kFloat64:
      return {in.read<double>()};
    case GgufType::kBool:
      return {read_bool(in)};
    case GgufType::kString:
      return {std::string(in.read_string())};
    case GgufType::kArray:
      break;
  }
  in.fail(cat("unknown value type ", static_cast<uint32_t>(type)), ErrorCode::kUnsupported);
}

template <class Stored, class InFile>
MetaValue read_numbers(Cursor& in, size_t count) {
  std::vector<Stored> values(count);
  for (auto&& value : values) value = static_cast<Stored>(in.read<InFile>());
  return {std::move(values)};
}

/// uint64 values stay integers of int64_t where all fit, which is always so in practice.
MetaValue read_uint64s(Cursor& in, size_t count) {
  std::vector<int64_t> values;
  MetaList wide;
  values.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    const auto value = in.read<uint64_t>();
    if (wide.empty() && value <= static_cast<uint64_t>(Metadata::kMaxInt)) {
      values.push_back(static_cast<int64_t>(value));
      continue;
    }
    if (wide.empty()) {
      for (const int64_t before : values) wide.push_back({before});
    }
    wide.push_back(from_uint64(value));
  }
  if (!wide.empty()) return {std::move(wide)};
  return {std::move(values)};
}

MetaValue read_array(Cursor& in, int depth) {
  if (depth > kMaxArrayDepth) in.fail(cat("arrays nested more than ", kMaxArrayDepth, " deep"));
  const auto type = static_cast<GgufType>(in.read<uint32_t>());
  // A string is at least its length, an array its element type and count.
  const uint64_t min_bytes = type == GgufType::kArray ? 12 : gguf_type_size(type).value_or(8);
  const size_t count = in.read_count(min_bytes, cat("elements of type ", gguf_type_name(type)));
  if (count == 0 && gguf_type_name(type) != "unknown") return {MetaList{}};
  switch (type) {
    case GgufType::kUint8:
      return read_numbers<int64_t, uint8_t>(in, count);
    case GgufType::kInt8:
      return read_numbers<int64_t, int8_t>(in, count);
    case GgufType::kUint16:
      return read_numbers<int64_t, uint16_t>(in, count);
    case GgufType::kInt16:
      return read_numbers<int64_t, int16_t>(in, count);
    case GgufType::kUint32:
      return read_numbers<int64_t, uint32_t>(in, count);
    case GgufType::kInt32:
      return read_numbers<int64_t, int32_t>(in, count);
    case GgufType::kUint64:
      return read_uint64s(in, count);
    case GgufType::kInt64:
      return read_numbers<int64_t, int64_t>(in, count);
    case GgufType::kFloat32:
      return read_numbers<double, float>(in, count);
    case GgufType::kFloat64:
      return read_numbers<double, double>(in, count);
    case GgufType::kBool: {
      std::vector<bool> values(count);
      for (size_t i = 0; i < count; ++i) values[i] = read_bool(in);
      return {std::move(values)};
    }
    case GgufType::kString: {
      std::vector<std::string> values(count);
      for (std::string& value : values) value = in.read_string();
      return {std::move(values)};
    }
    case GgufType::kArray: {
      MetaList values(count);
      for (MetaValue& value : values) value = read_array(in, depth + 1);
      return {std::move(values)};
    }
  }
  in.fail(cat("unknown element type ", static_cast<uint32_t>(type)), ErrorCode::kUnsupported);
}

int read_version(Cursor& in) {
  in.field = "magic";
  if (const auto magic = in.read<uint32_t>(); magic != kGgufMagic) in.fail("not \"GGUF\": this is no GGUF file");
  in.field = "version";
  const auto version = in.read<uint32_t>();
  if (version != 0 && (version & 0xffffu) == 0) {
    in.fail("the file is big-endian, expected little-endian; convert it", ErrorCode::kUnsupported);
  }
  if (version != 2 && version != 3) in.fail(cat("found ", version, ", expected 2 or 3"), ErrorCode::kUnsupported);
  return static_cast<int>(version);
}

std::string read_name(Cursor& in) {
  const std::string_view name = in.read_string();
  if (name.empty()) in.fail("has an empty name");
  if (name.size() > kMaxNameBytes) in.fail(cat("has a name of ", name.size(), " bytes, at most ", kMaxNameBytes));
  return std::string(name);
}

void read_pairs(Cursor& in, size_t count, Metadata& metadata) {
  for (size_t i = 0; i < count; ++i) {
    in.field = cat("metadata pair ", i);
    std::string key = read_name(in);
    in.field = printable(key);
    const auto type = static_cast<GgufType>(in.read<uint32_t>());
    MetaValue value = type == GgufType::kArray ? read_array(in, 1) : read_scalar(in, type);
    metadata.add(std::move(key), std::move(value));
  }
}

struct TensorInfo {
  std::string name;
  DType dtype;
  Shape shape;
  uint64_t offset;
  uint64_t num_bytes;
};

TensorInfo read_tensor_info(Cursor& in, size_t index) {
  in.field = cat("tensor ", index);
  TensorInfo info{};
  info.name = read_name(in);
  in.field = cat("tensor ", printable(info.name));
  const auto dims = in.read<uint32_t>();
  if (dims > kGgufMaxDims) in.fail(cat("has ", dims, " dimensions, at most ", kGgufMaxDims));
  info.shape.resize(dims);
  for (uint32_t d = dims; d-- > 0;) {  // the file has the fastest dimension first
    const auto size = in.read<uint64_t>();
    if (size > static_cast<uint64_t>(Metadata::kMaxInt)) in.fail(cat("dimension ", dims - 1 - d, " is ", size));
    info.shape[d] = static_cast<int64_t>(size);
  }
  const auto ggml_type = in.read<uint32_t>();
  const auto dtype = dtype_from_ggml(ggml_type);
  if (!dtype) in.fail(cat("unknown type, number ", ggml_type), ErrorCode::kUnsupported);
  info.dtype = *dtype;
  info.offset = in.read<uint64_t>();
  const int64_t num_bytes = tensor_bytes(info.dtype, info.shape);
  if (num_bytes < 0) {
    const int32_t block = dtype_info(info.dtype).block_elems;
    const bool whole_blocks = !info.shape.empty() && info.shape.back() % block == 0;
    const std::string shape = cat("shape ", shape_text(info.shape));
    if (num_elements(info.shape) < 0 || whole_blocks)
      in.fail(cat(shape, " of ", dtype_name(info.dtype), ": size overflows"));
    in.fail(cat(shape, ": rows are no multiple of the ", block, " elements of a ", dtype_name(info.dtype), " block"));
  }
  info.num_bytes = static_cast<uint64_t>(num_bytes);
  return info;
}

void check_overlap(const std::string& file, const std::vector<TensorInfo>& infos) {
  std::vector<const TensorInfo*> by_offset;
  for (const TensorInfo& info : infos) {
    if (info.num_bytes > 0) by_offset.push_back(&info);
  }
  std::sort(by_offset.begin(), by_offset.end(), [](auto* a, auto* b) { return a->offset < b->offset; });
  for (size_t i = 1; i < by_offset.size(); ++i) {
    const TensorInfo& before = *by_offset[i - 1];
    if (before.offset + before.num_bytes > by_offset[i]->offset) {
      throw LoadError(file, cat("tensor ", printable(by_offset[i]->name), ": offset ", by_offset[i]->offset,
                                " lies within tensor ", printable(before.name)));
    }
  }
}

}  // namespace

GgufContents parse_gguf(const std::string& name, std::span<const std::byte> bytes) {
  GgufContents contents{.metadata = Metadata(name), .tensors = {}, .version = 0};
  Cursor in(name, bytes);
  contents.version = read_version(in);
  in.field = "tensor count";
  const size_t num_tensors = in.read_count(kMinTensorInfoBytes, "tensors");
  in.field = "metadata count";
  const size_t num_pairs = in.read_count(kMinPairBytes, "metadata pairs");
  read_pairs(in, num_pairs, contents.metadata);

  const int64_t alignment = contents.metadata.get_int("general.alignment", 1, std::numeric_limits<uint32_t>::max())
                                .value_or(kGgufDefaultAlignment);
  if (!std::has_single_bit(static_cast<uint64_t>(alignment))) {
    contents.metadata.fail("general.alignment", cat("found ", alignment, ", expected a power of two"));
  }
  const auto align = static_cast<uint64_t>(alignment);

  std::vector<TensorInfo> infos;
  infos.reserve(num_tensors);
  for (size_t i = 0; i < num_tensors; ++i) infos.push_back(read_tensor_info(in, i));

  // A file without tensors may end before the padding.
  const size_t data_start = std::min<uint64_t>((in.pos() + align - 1) / align * align, bytes.size());
  const std::span<const std::byte> data = bytes.subspan(data_start);
  for (const TensorInfo& info : infos) {
    in.field = cat("tensor ", printable(info.name));
    if (info.offset % align != 0) in.fail(cat("offset ", info.offset, " is no multiple of the alignment ", align));
    if (info.offset > data.size() || info.num_bytes > data.size() - info.offset) {
      in.fail(cat("offset ", info.offset, " with ", info.num_bytes, " bytes ends outside the file, which has ",
                  data.size(), " bytes of tensor data: truncated?"));
    }
    const auto part = data.subspan(static_cast<size_t>(info.offset), static_cast<size_t>(info.num_bytes));
    if (!contents.tensors.add({info.name, {info.dtype, info.shape, part}})) in.fail("occurs twice");
  }
  check_overlap(name, infos);
  return contents;
}

}  // namespace headrace
