#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace headrace::cluster {

// Fields of a control message. Each throws Error(kCorrupt), naming the field, what was found and what was expected,
// where it is missing, of another type or out of bounds.
[[nodiscard]] int64_t as_integer(const nlohmann::json& value, const char* field, int64_t least, int64_t most);
[[nodiscard]] int64_t read_integer(const nlohmann::json& object, const char* field, int64_t least, int64_t most);
[[nodiscard]] double read_number(const nlohmann::json& object, const char* field, double least, double most);
[[nodiscard]] bool read_bool(const nlohmann::json& object, const char* field);
[[nodiscard]] std::string read_text(const nlohmann::json& object, const char* field, size_t max_bytes);
[[nodiscard]] std::string as_text(const nlohmann::json& value, const char* field, size_t max_bytes);
[[nodiscard]] const nlohmann::json& read_array(const nlohmann::json& object, const char* field, size_t least,
                                               size_t most);
[[nodiscard]] const nlohmann::json& read_object(const nlohmann::json& object, const char* field);

}  // namespace headrace::cluster
