#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "files/metadata.h"

namespace headrace {

/// The whole of a text file. Throws LoadError like MappedFile, or where it is larger than `max_bytes`.
[[nodiscard]] std::string read_text_file(const std::string& path, size_t max_bytes = 256u << 20);

/// Levels of arrays and objects within each other that parse_json accepts.
inline constexpr int kMaxJsonDepth = 64;

/// Parses JSON (RFC 8259). Throws LoadError naming `name` (the file) and, for a syntax error or invalid UTF-8, the byte
/// position; refuses duplicate keys of an object and more than kMaxJsonDepth levels.
[[nodiscard]] nlohmann::json parse_json(const std::string& name, std::string_view text);

/// read_text_file and parse_json.
[[nodiscard]] nlohmann::json load_json(const std::string& path);

/// A JSON object (config.json, generation_config.json) as Metadata. Throws LoadError where it is not an object.
[[nodiscard]] Metadata metadata_from_json(const std::string& name, const nlohmann::json& object);

}  // namespace headrace
