#pragma once

#include <span>
#include <string_view>

namespace headrace::server {

/// A file of the page, carried inside the program (cmake/EmbedFiles.cmake).
struct PageFile {
  std::string_view name;  ///< "index.html"
  std::string_view content_type;
  std::string_view content;
};
[[nodiscard]] std::span<const PageFile> page_files() noexcept;

}  // namespace headrace::server
