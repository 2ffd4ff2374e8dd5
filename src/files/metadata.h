#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace headrace {

struct MetaValue;
/// A list that is none of the flat kinds: nested, mixed, or of objects.
using MetaList = std::vector<MetaValue>;
/// Marks a JSON object; its members are entries of their own ("rope_scaling.factor").
struct MetaObject {
  int64_t num_members = 0;
  bool operator==(const MetaObject&) const = default;
};

/// One value of a model's metadata. Integers are int64_t wherever they fit and uint64_t only above; both float widths
/// are double. An empty array of whatever type is an empty MetaList;
/// std::monostate is a JSON null inside a list.
struct MetaValue {
  std::variant<bool, int64_t, uint64_t, double, std::string, std::vector<bool>, std::vector<int64_t>,
               std::vector<double>, std::vector<std::string>, MetaList, MetaObject, std::monostate>
      data;
  bool operator==(const MetaValue&) const = default;
};

/// What `value` is, for messages and listings: "the integer 5", "a list of 3 strings".
[[nodiscard]] std::string describe(const MetaValue& value);

/// The keys and values that come with a model, the same for GGUF metadata and for config.json.
/// JSON objects are flattened to dotted paths, objects in lists too ("a.0.b"); JSON null is absent.
/// Getters give nullopt where the key is absent and throw LoadError, naming file, key, what was found and what was
/// expected, where the value has another type or range. Spans live as long as the Metadata.
class Metadata {
 public:
  /// `source`: the file, for messages.
  explicit Metadata(std::string source = {}) : source_(std::move(source)) {}

  [[nodiscard]] const std::string& source() const noexcept { return source_; }
  /// Throws LoadError where the key is there already.
  void add(std::string key, MetaValue value);

  [[nodiscard]] bool has(std::string_view key) const noexcept { return find(key) != nullptr; }
  [[nodiscard]] const MetaValue* find(std::string_view key) const noexcept;
  [[nodiscard]] const std::map<std::string, MetaValue, std::less<>>& entries() const noexcept { return entries_; }

  static constexpr int64_t kMinInt = std::numeric_limits<int64_t>::min();
  static constexpr int64_t kMaxInt = std::numeric_limits<int64_t>::max();

  /// An integer of any width within [min, max].
  [[nodiscard]] std::optional<int64_t> get_int(std::string_view key, int64_t min = kMinInt,
                                               int64_t max = kMaxInt) const;
  /// A float of any width or an integer; may be infinite or NaN if the file says so (GGUF only).
  [[nodiscard]] std::optional<double> get_float(std::string_view key) const;
  [[nodiscard]] std::optional<bool> get_bool(std::string_view key) const;
  [[nodiscard]] std::optional<std::string> get_string(std::string_view key) const;
  [[nodiscard]] std::optional<std::span<const int64_t>> get_ints(std::string_view key) const;
  /// A list of floats, integers, or both.
  [[nodiscard]] std::optional<std::vector<double>> get_floats(std::string_view key) const;
  [[nodiscard]] std::optional<std::vector<bool>> get_bools(std::string_view key) const;
  [[nodiscard]] std::optional<std::span<const std::string>> get_strings(std::string_view key) const;
  /// Number of elements of a list of whatever type.
  [[nodiscard]] std::optional<int64_t> list_size(std::string_view key) const;

  /// The same for keys that must be there.
  [[nodiscard]] int64_t require_int(std::string_view key, int64_t min = kMinInt, int64_t max = kMaxInt) const;
  /// Finite and within [min, max].
  [[nodiscard]] double require_float(std::string_view key, double min = std::numeric_limits<double>::lowest(),
                                     double max = std::numeric_limits<double>::max()) const;
  [[nodiscard]] std::string require_string(std::string_view key) const;
  [[nodiscard]] std::span<const std::string> require_strings(std::string_view key) const;

  /// Throws LoadError "<source>: <key>: <what>": for checks that the caller makes.
  [[noreturn]] void fail(std::string_view key, std::string_view what) const;

 private:
  [[noreturn]] void wrong_type(std::string_view key, const MetaValue& found, std::string_view expected) const;
  [[noreturn]] void missing(std::string_view key, std::string_view expected) const;

  std::string source_;
  std::map<std::string, MetaValue, std::less<>> entries_;
};

}  // namespace headrace
