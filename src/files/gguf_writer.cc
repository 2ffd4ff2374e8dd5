#include "files/gguf_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <type_traits>
#include <utility>

#include "base/byte_order.h"
#include "base/error.h"

namespace headrace {
namespace {

using Bytes = std::vector<std::byte>;

template <class T>
void put(Bytes& out, T value) {
  const size_t at = out.size();
  out.resize(at + sizeof(T));
  store_le(out.data() + at, value);
}

void put_text(Bytes& out, std::string_view text) {
  put(out, uint64_t{text.size()});
  const auto* begin = reinterpret_cast<const std::byte*>(text.data());
  out.insert(out.end(), begin, begin + text.size());
}

void pad(Bytes& out, uint64_t alignment) { out.resize((out.size() + alignment - 1) / alignment * alignment); }

[[noreturn]] void misfit(const std::string& key, GgufType type, const MetaValue& value) {
  throw Error(ErrorCode::kInvalidArgument,
              cat(printable(key), ": ", describe(value), " does not fit the GGUF type ", gguf_type_name(type)));
}

/// One number as T; false where the value is of another kind or out of range.
template <class T>
bool put_number(Bytes& out, const MetaValue& value) {
  if (const auto* v = std::get_if<int64_t>(&value.data)) {
    bool in_range = true;
    if constexpr (std::is_integral_v<T>) in_range = std::in_range<T>(*v);
    if (in_range) put(out, static_cast<T>(*v));
    return in_range;
  }
  if (const auto* v = std::get_if<uint64_t>(&value.data); v != nullptr && std::is_same_v<T, uint64_t>) {
    return put(out, static_cast<T>(*v)), true;
  }
  if (const auto* v = std::get_if<double>(&value.data); v != nullptr && std::is_floating_point_v<T>) {
    return put(out, static_cast<T>(*v)), true;
  }
  return false;
}

bool put_scalar(Bytes& out, GgufType type, const MetaValue& value) {
  switch (type) {
    case GgufType::kUint8:
      return put_number<uint8_t>(out, value);
    case GgufType::kInt8:
      return put_number<int8_t>(out, value);
    case GgufType::kUint16:
      return put_number<uint16_t>(out, value);
    case GgufType::kInt16:
      return put_number<int16_t>(out, value);
    case GgufType::kUint32:
      return put_number<uint32_t>(out, value);
    case GgufType::kInt32:
      return put_number<int32_t>(out, value);
    case GgufType::kFloat32:
      return put_number<float>(out, value);
    case GgufType::kUint64:
      return put_number<uint64_t>(out, value);
    case GgufType::kInt64:
      return put_number<int64_t>(out, value);
    case GgufType::kFloat64:
      return put_number<double>(out, value);
    case GgufType::kBool:
      if (const auto* v = std::get_if<bool>(&value.data)) return put(out, uint8_t{*v}), true;
      return false;
    case GgufType::kString:
      if (const auto* v = std::get_if<std::string>(&value.data)) return put_text(out, *v), true;
      return false;
    case GgufType::kArray:
      break;
  }
  return false;
}

bool is_list(const MetaValue& value) {
  return std::visit(
      [](const auto& v) {
        using T = std::decay_t<decltype(v)>;
        return std::is_same_v<T, MetaList> || std::is_same_v<T, std::vector<bool>> ||
               std::is_same_v<T, std::vector<int64_t>> || std::is_same_v<T, std::vector<double>> ||
               std::is_same_v<T, std::vector<std::string>>;
      },
      value.data);
}

/// The elements of a list of whatever kind.
MetaList elements_of(const MetaValue& value) {
  return std::visit(
      [](const auto& v) {
        MetaList out;
        using T = std::decay_t<decltype(v)>;
        if constexpr (std::is_same_v<T, MetaList>) {
          out = v;
        } else if constexpr (requires { v.begin(); } && !std::is_same_v<T, std::string>) {
          for (const auto& element : v) out.push_back({static_cast<typename T::value_type>(element)});
        }
        return out;
      },
      value.data);
}

void put_list(Bytes& out, const std::string& key, GgufType type, const MetaValue& value, GgufType inner) {
  const MetaList elements = elements_of(value);
  put(out, static_cast<uint32_t>(type));
  put(out, uint64_t{elements.size()});
  for (const MetaValue& element : elements) {
    if (type == GgufType::kArray && is_list(element)) {
      const MetaList below = elements_of(element);
      const bool deeper = !below.empty() && is_list(below.front());
      put_list(out, key, deeper ? GgufType::kArray : inner, element, inner);
    } else if (!put_scalar(out, type, element)) {
      misfit(key, type, element);
    }
  }
}

/// A file descriptor that is written and then put into its place; without that the file is removed.
class PendingFile {
 public:
  explicit PendingFile(const std::string& target) : target_(target), pending_(cat(target, ".", ::getpid(), ".part")) {
    fd_ = ::open(pending_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd_ < 0) fail("cannot be created");
  }
  PendingFile(const PendingFile&) = delete;
  PendingFile& operator=(const PendingFile&) = delete;
  ~PendingFile() {
    if (fd_ >= 0) ::close(fd_);
    if (!pending_.empty()) ::unlink(pending_.c_str());
  }

  void write(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const ssize_t n = ::write(fd_, bytes.data(), bytes.size());
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) fail("cannot be written");
      bytes = bytes.subspan(static_cast<size_t>(n));
    }
  }
  void finish() {
    if (::close(std::exchange(fd_, -1)) != 0) fail("cannot be written");
    if (std::rename(pending_.c_str(), target_.c_str()) != 0) fail("cannot be put into place");
    pending_.clear();
  }

 private:
  [[noreturn]] void fail(std::string_view what) const {
    throw LoadError(target_, cat(what, ": ", std::strerror(errno)), ErrorCode::kInvalidArgument);
  }

  std::string target_;
  std::string pending_;
  int fd_ = -1;
};

}  // namespace

GgufWriter::GgufWriter(uint32_t alignment) : alignment_(alignment) {
  if (alignment < 8 || !std::has_single_bit(alignment)) {
    throw Error(ErrorCode::kInvalidArgument, cat("alignment: found ", alignment, ", expected a power of two from 8"));
  }
  if (alignment != kGgufDefaultAlignment) add_u32("general.alignment", alignment);
}

void GgufWriter::add(const std::string& key, GgufType type, const MetaValue& value, GgufType inner) {
  put_text(pairs_, key);
  if (is_list(value)) {
    put(pairs_, static_cast<uint32_t>(GgufType::kArray));
    put_list(pairs_, key, type, value, inner);
  } else {
    put(pairs_, static_cast<uint32_t>(type));
    if (!put_scalar(pairs_, type, value)) misfit(key, type, value);
  }
  ++num_pairs_;
}

void GgufWriter::add_string(const std::string& key, std::string value) {
  add(key, GgufType::kString, {std::move(value)});
}
void GgufWriter::add_u32(const std::string& key, uint32_t value) { add(key, GgufType::kUint32, {int64_t{value}}); }
void GgufWriter::add_f32(const std::string& key, float value) { add(key, GgufType::kFloat32, {double{value}}); }
void GgufWriter::add_bool(const std::string& key, bool value) { add(key, GgufType::kBool, {value}); }
void GgufWriter::add_strings(const std::string& key, std::vector<std::string> values) {
  add(key, GgufType::kString, {std::move(values)});
}

void GgufWriter::add_tensor(std::string name, const TensorView& view) {
  const int64_t expected = tensor_bytes(view.dtype, view.shape);
  if (dtype_info(view.dtype).ggml_type < 0) {
    throw Error(ErrorCode::kUnsupported, cat(name, ": GGUF has no type for ", dtype_name(view.dtype)));
  }
  if (view.shape.size() > kGgufMaxDims || expected < 0 || view.bytes.size() != static_cast<size_t>(expected)) {
    throw Error(ErrorCode::kInvalidArgument, cat(name, ": ", view.bytes.size(), " bytes for ", dtype_name(view.dtype),
                                                 " ", shape_text(view.shape), ", expected ", expected));
  }
  tensors_.push_back({std::move(name), view});
}

std::vector<std::byte> GgufWriter::head() const {
  Bytes out;
  put(out, kGgufMagic);
  put(out, uint32_t{3});
  put(out, uint64_t{tensors_.size()});
  put(out, num_pairs_);
  out.insert(out.end(), pairs_.begin(), pairs_.end());
  uint64_t offset = 0;
  for (const Tensor& tensor : tensors_) {
    put_text(out, tensor.name);
    put(out, static_cast<uint32_t>(tensor.view.shape.size()));
    for (auto size = tensor.view.shape.rbegin(); size != tensor.view.shape.rend(); ++size) {
      put(out, static_cast<uint64_t>(*size));
    }
    put(out, static_cast<uint32_t>(dtype_info(tensor.view.dtype).ggml_type));
    put(out, offset);
    offset += (tensor.view.bytes.size() + alignment_ - 1) / alignment_ * alignment_;
  }
  pad(out, alignment_);
  return out;
}

std::vector<std::byte> GgufWriter::bytes() const {
  Bytes out = head();
  for (const Tensor& tensor : tensors_) {
    out.insert(out.end(), tensor.view.bytes.begin(), tensor.view.bytes.end());
    pad(out, alignment_);
  }
  return out;
}

void GgufWriter::write(const std::string& path) const {
  PendingFile file(path);
  file.write(head());
  const Bytes zeros(alignment_);
  for (const Tensor& tensor : tensors_) {
    file.write(tensor.view.bytes);
    const size_t past = tensor.view.bytes.size() % alignment_;
    if (past != 0) file.write(std::span(zeros).first(alignment_ - past));
  }
  file.finish();
}

}  // namespace headrace
