#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "openai/request_error.h"

namespace headrace::openai {

using Json = nlohmann::ordered_json;

/// Parses a body. Throws RequestError `invalid_json` with the place of the fault; refuses what is no object, duplicate
/// keys and more than 64 levels.
[[nodiscard]] Json parse_body(std::string_view text);

/// Text of a value; bytes that are not UTF-8 become U+FFFD.
[[nodiscard]] std::string to_text(const Json& json);

/// Typed access to the fields of an object. A field that is null counts as absent, as in the OpenAI API. Every function
/// throws RequestError `invalid_value` that names the field, what it is and what was expected. Borrows the object.
class Fields {
 public:
  /// `where`: the path of the object within the body ("response_format"); empty for the body itself.
  explicit Fields(const Json& object, std::string where = {});

  [[nodiscard]] bool has(std::string_view name) const { return find(name) != nullptr; }
  /// The value; nullptr where it is absent or null.
  [[nodiscard]] const Json* find(std::string_view name) const;
  [[nodiscard]] std::optional<bool> boolean(std::string_view name) const;
  [[nodiscard]] std::optional<double> number(std::string_view name) const;
  [[nodiscard]] std::optional<int64_t> integer(std::string_view name, int64_t min, int64_t max) const;
  [[nodiscard]] std::optional<std::string> string(std::string_view name) const;
  /// One of `choices`.
  [[nodiscard]] std::optional<std::string> choice(std::string_view name,
                                                  std::span<const std::string_view> choices) const;
  [[nodiscard]] std::vector<std::string> strings(std::string_view name) const;  ///< a string counts as a list of one
  [[nodiscard]] std::vector<int32_t> token_ids(std::string_view name) const;
  [[nodiscard]] const Json* array(std::string_view name) const;   ///< nullptr where absent
  [[nodiscard]] const Json* object(std::string_view name) const;  ///< nullptr where absent
  /// The path of a field, for messages: "response_format.type".
  [[nodiscard]] std::string path(std::string_view name) const;
  [[noreturn]] void refuse(std::string_view name, std::string_view expected) const;

 private:
  const Json* object_;
  std::string where_;
};

/// Token ids in a JSON array; `path` is for messages.
[[nodiscard]] std::vector<int32_t> token_ids_of(const Json& array, const std::string& path);

}  // namespace headrace::openai
