#include "files/safetensors.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/byte_order.h"
#include "base/error.h"
#include "files/json_file.h"

namespace headrace {
namespace {

using Json = nlohmann::json;

constexpr uint64_t kMaxHeaderBytes = 100'000'000;  // the limit of the format's own library
constexpr size_t kMaxDims = 8;

constexpr std::array kDTypes{
    DType::kF64, DType::kF32, DType::kF16, DType::kBF16, DType::kI64,    DType::kI32,
    DType::kI16, DType::kI8,  DType::kU8,  DType::kBool, DType::kF8E4M3, DType::kF8E5M2,
};

std::optional<DType> dtype_of(std::string_view name) {
  for (const DType dtype : kDTypes) {
    if (dtype_name(dtype) == name) return dtype;
  }
  return std::nullopt;
}

/// One entry of the header, and the messages about it.
class Entry {
 public:
  Entry(const std::string& file, const std::string& tensor, const Json& json)
      : file_(file), tensor_(tensor), json_(json) {
    if (!json.is_object()) fail(cat("found a JSON ", json.type_name(), ", expected an object"));
  }

  [[noreturn]] void fail(std::string_view what, ErrorCode code = ErrorCode::kCorrupt) const {
    throw LoadError(file_, cat("tensor ", printable(tensor_), ": ", what), code);
  }

  [[nodiscard]] DType dtype() const {
    const Json& field = member("dtype");
    if (!field.is_string()) fail("dtype: expected a string");
    const auto& name = field.get_ref<const std::string&>();
    const auto dtype = dtype_of(name);
    if (!dtype) fail(cat("dtype: ", printable(name), " is not supported"), ErrorCode::kUnsupported);
    return *dtype;
  }

  [[nodiscard]] Shape shape() const {
    const std::vector<uint64_t> sizes = numbers("shape");
    if (sizes.size() > kMaxDims) fail(cat("shape: ", sizes.size(), " dimensions, at most ", kMaxDims));
    Shape out;
    for (const uint64_t size : sizes) {
      if (!std::in_range<int64_t>(size)) fail(cat("shape: ", size, " is too large"));
      out.push_back(static_cast<int64_t>(size));
    }
    return out;
  }

  /// Begin and end within the data.
  [[nodiscard]] std::pair<uint64_t, uint64_t> offsets(uint64_t data_bytes) const {
    const std::vector<uint64_t> ends = numbers("data_offsets");
    if (ends.size() != 2) fail(cat("data_offsets: ", ends.size(), " numbers, expected begin and end"));
    if (ends[0] > ends[1] || ends[1] > data_bytes) {
      fail(cat("data_offsets: [", ends[0], ",", ends[1], "] is outside the ", data_bytes,
               " bytes of data in the file: truncated?"));
    }
    return {ends[0], ends[1]};
  }

 private:
  [[nodiscard]] const Json& member(const char* field) const {
    const auto it = json_.find(field);
    if (it == json_.end()) fail(cat(field, ": is missing"));
    return *it;
  }

  [[nodiscard]] std::vector<uint64_t> numbers(const char* field) const {
    const Json& list = member(field);
    if (!list.is_array()) fail(cat(field, ": expected a list of numbers"));
    std::vector<uint64_t> out;
    for (const Json& number : list) {
      if (!number.is_number_unsigned()) fail(cat(field, ": expected numbers of at least 0"));
      out.push_back(number.get<uint64_t>());
    }
    return out;
  }

  const std::string& file_;
  const std::string& tensor_;
  const Json& json_;
};

std::map<std::string, std::string> read_metadata(const std::string& file, const Json& json) {
  std::map<std::string, std::string> out;
  if (!json.is_object()) throw LoadError(file, "__metadata__: expected an object of strings");
  for (const auto& [key, value] : json.items()) {
    if (!value.is_string()) throw LoadError(file, cat("__metadata__: ", printable(key), ": expected a string"));
    out[key] = value.get<std::string>();
  }
  return out;
}

/// The format wants the data covered without holes, so that nothing hides in a file.
void check_cover(const std::string& file, const std::vector<NamedTensor>& tensors, std::span<const std::byte> data) {
  const std::byte* at = data.data();
  for (const NamedTensor& tensor : tensors) {
    const std::byte* begin = tensor.view.bytes.data();
    if (begin < at) throw LoadError(file, cat("tensor ", printable(tensor.name), ": data_offsets: overlaps another"));
    if (begin > at) {
      throw LoadError(file, cat("tensor ", printable(tensor.name), ": data_offsets: ", begin - at,
                                " bytes before it belong to no tensor"));
    }
    at = begin + tensor.view.bytes.size();
  }
  if (at != data.data() + data.size()) {
    throw LoadError(file, cat(data.data() + data.size() - at, " bytes at the end belong to no tensor"));
  }
}

void check_shard_name(const std::string& index, const std::string& tensor, const std::string& shard) {
  if (shard.find_first_of(std::string_view("/\\\0", 3)) != std::string::npos || !shard.ends_with(".safetensors")) {
    throw LoadError(index, cat("weight_map: ", printable(tensor), ": \"", printable(shard),
                               "\" is not the name of a .safetensors file in this folder"));
  }
}

}  // namespace

SafetensorsContents parse_safetensors(const std::string& name, std::span<const std::byte> bytes) {
  if (bytes.size() < 8) throw LoadError(name, cat("header length: the file has only ", bytes.size(), " bytes"));
  const auto header_bytes = load_le<uint64_t>(bytes.data());
  if (header_bytes > kMaxHeaderBytes) {
    throw LoadError(name, cat("header length: ", header_bytes, " bytes, at most ", kMaxHeaderBytes,
                              "; is this a safetensors file?"));
  }
  if (header_bytes > bytes.size() - 8) {
    throw LoadError(
        name, cat("header length: ", header_bytes, " bytes, but only ", bytes.size() - 8, " are left: truncated?"));
  }
  const auto header = bytes.subspan(8, static_cast<size_t>(header_bytes));
  const auto data = bytes.subspan(8 + static_cast<size_t>(header_bytes));
  const Json json = parse_json(name, {reinterpret_cast<const char*>(header.data()), header.size()});
  if (!json.is_object()) throw LoadError(name, cat("header: found a JSON ", json.type_name(), ", expected an object"));

  SafetensorsContents contents;
  std::vector<NamedTensor> tensors;
  for (const auto& [tensor, value] : json.items()) {
    if (tensor == "__metadata__") {
      contents.metadata = read_metadata(name, value);
      continue;
    }
    const Entry entry(name, tensor, value);
    const DType dtype = entry.dtype();
    Shape shape = entry.shape();
    const auto [begin, end] = entry.offsets(data.size());
    const int64_t expected = tensor_bytes(dtype, shape);
    if (expected < 0) entry.fail(cat("shape: ", shape_text(shape), " of ", dtype_name(dtype), ": size overflows"));
    if (static_cast<uint64_t>(expected) != end - begin) {
      entry.fail(cat("data_offsets: ", end - begin, " bytes, expected ", expected, " for ", dtype_name(dtype), " ",
                     shape_text(shape)));
    }
    const auto part = data.subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin));
    tensors.push_back({tensor, {dtype, std::move(shape), part}});
  }
  // By begin, then end: an empty tensor lies before the one that begins where it does.
  std::stable_sort(tensors.begin(), tensors.end(), [](const NamedTensor& a, const NamedTensor& b) {
    return std::pair(a.view.bytes.data(), a.view.bytes.size()) < std::pair(b.view.bytes.data(), b.view.bytes.size());
  });
  check_cover(name, tensors, data);
  for (NamedTensor& tensor : tensors) {
    HR_CHECK(contents.tensors.add(std::move(tensor)), "keys of a JSON object are distinct");
  }
  return contents;
}

std::map<std::string, std::vector<std::string>> parse_safetensors_index(const std::string& name,
                                                                        std::string_view text) {
  const Json json = parse_json(name, text);
  const auto map = json.is_object() ? json.find("weight_map") : json.end();
  if (map == json.end() || !map->is_object()) throw LoadError(name, "weight_map: is missing or not an object");
  std::map<std::string, std::vector<std::string>> out;
  for (const auto& [tensor, shard] : map->items()) {
    if (!shard.is_string()) throw LoadError(name, cat("weight_map: ", printable(tensor), ": expected a file name"));
    const auto& file = shard.get_ref<const std::string&>();
    check_shard_name(name, tensor, file);
    out[file].push_back(tensor);
  }
  if (out.empty()) throw LoadError(name, "weight_map: lists no tensor");
  return out;
}

SafetensorsModel SafetensorsModel::open(const std::string& path) {
  SafetensorsModel out;
  out.files_.emplace_back(path);
  SafetensorsContents contents = parse_safetensors(path, out.files_[0].bytes());
  out.table_ = std::move(contents.tensors);
  out.metadata_ = std::move(contents.metadata);
  return out;
}

SafetensorsModel SafetensorsModel::open_index(const std::string& index_path) {
  const auto shards = parse_safetensors_index(index_path, read_text_file(index_path));
  const std::filesystem::path folder = std::filesystem::path(index_path).parent_path();
  SafetensorsModel out;
  for (const auto& [shard, names] : shards) {
    const std::string path = (folder / shard).string();
    std::error_code ignored;
    if (!std::filesystem::exists(path, ignored)) {
      throw LoadError(index_path, cat("weight_map: the file ", printable(shard), " is missing"), ErrorCode::kNotFound);
    }
    out.files_.emplace_back(path);
    SafetensorsContents contents = parse_safetensors(path, out.files_.back().bytes());
    if (out.files_.size() == 1) out.metadata_ = std::move(contents.metadata);
    for (const std::string& name : names) {
      if (contents.tensors.find(name) == nullptr) {
        throw LoadError(path, cat("tensor ", printable(name), ": is not here, but ",
                                  std::filesystem::path(index_path).filename().string(), " says so"));
      }
    }
    // The index's names are sorted, as JSON objects are held.
    for (const NamedTensor& tensor : contents.tensors.all()) {
      if (std::binary_search(names.begin(), names.end(), tensor.name)) {
        HR_CHECK(out.table_.add(tensor), "the index gives each tensor one file");
      }
    }
  }
  return out;
}

void SafetensorsModel::drop_pages(std::span<const std::byte> part) const noexcept {
  for (const MappedFile& file : files_) file.drop_pages(part);
}

}  // namespace headrace
