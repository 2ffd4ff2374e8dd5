#pragma once

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace headrace {

/// Why a text is not taken as JSON; whoever reads it words the message.
struct JsonFault {
  enum class Kind { kSyntax, kKeyTwice, kTooDeep };
  Kind kind;
  std::string what = {};  ///< the library's words, or the key
  size_t position = 0;    ///< of a syntax error, in bytes
};

/// Builds a document (nlohmann::json or ordered_json) from the parser's events, which come without recursion; refuses
/// what a plain parse would take: a key twice in one object, and more than `max_depth` levels. Takes time
/// O(n log n) in the text, however many keys an object has.
template <class Json>
class JsonBuilder : public nlohmann::json_sax<Json> {
 public:
  /// The document. Throws JsonFault.
  [[nodiscard]] static Json build(std::string_view text, size_t max_depth) {
    JsonBuilder builder(max_depth);
    if (!Json::sax_parse(text, &builder)) throw JsonFault{JsonFault::Kind::kSyntax};
    return std::move(builder.root_);
  }

  using typename nlohmann::json_sax<Json>::number_integer_t;
  using typename nlohmann::json_sax<Json>::number_unsigned_t;
  using typename nlohmann::json_sax<Json>::number_float_t;
  using typename nlohmann::json_sax<Json>::string_t;
  using typename nlohmann::json_sax<Json>::binary_t;

  bool null() override { return put(nullptr); }
  bool boolean(bool value) override { return put(value); }
  bool number_integer(number_integer_t value) override { return put(value); }
  bool number_unsigned(number_unsigned_t value) override { return put(value); }
  bool number_float(number_float_t value, const string_t&) override { return put(value); }
  bool string(string_t& value) override { return put(std::move(value)); }
  bool binary(binary_t&) override { return false; }  // never in text
  bool start_object(size_t) override { return open(Json::object()); }
  bool start_array(size_t) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& name) override {
    if (!open_.back().keys.insert(name).second) throw JsonFault{JsonFault::Kind::kKeyTwice, name};
    key_ = std::move(name);
    return true;
  }
  bool parse_error(size_t position, const std::string&, const nlohmann::detail::exception& error) override {
    throw JsonFault{JsonFault::Kind::kSyntax, error.what(), position};
  }

 private:
  /// An array or object that is not closed. Only the innermost one grows, so the outer ones stay put.
  struct Open {
    Json* value = nullptr;
    std::set<std::string> keys = {};
  };

  explicit JsonBuilder(size_t max_depth) : max_depth_(max_depth) {}

  Json& place(Json value) {
    if (open_.empty()) return root_ = std::move(value);
    Json& parent = *open_.back().value;
    if (parent.is_array()) {
      parent.push_back(std::move(value));
      return parent.back();
    }
    auto& members = parent.template get_ref<typename Json::object_t&>();
    if constexpr (std::is_same_v<Json, nlohmann::ordered_json>) {
      // The key is new: a vector's own function does not look for it among all others.
      return static_cast<typename Json::object_t::Container&>(members)
          .emplace_back(std::move(key_), std::move(value))
          .second;
    } else {
      return members.emplace(std::move(key_), std::move(value)).first->second;
    }
  }
  template <class T>
  bool put(T&& value) {
    place(Json(std::forward<T>(value)));
    return true;
  }
  bool open(Json empty) {
    if (open_.size() >= max_depth_) throw JsonFault{JsonFault::Kind::kTooDeep};
    open_.push_back({&place(std::move(empty))});
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }

  size_t max_depth_;
  Json root_;
  std::vector<Open> open_;  // outermost first
  std::string key_;
};

}  // namespace headrace
