#include "files/hub/hub_name.h"

#include <algorithm>
#include <cctype>

#include "base/error.h"

namespace headrace {
namespace {

constexpr size_t kMaxRepoBytes = 200;
constexpr size_t kMaxPathBytes = 1024;
constexpr size_t kMaxPartBytes = 255;  // of a file name on Linux

bool is_word(std::string_view text, std::string_view also) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [&](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte < 128 && std::isalnum(byte) != 0) || also.find(c) != also.npos;
  });
}

/// The hub's rule for names; "--" is how the cache's folders join ORG and NAME.
bool is_repo_part(std::string_view text) {
  return is_word(text, "._-") && text.front() != '.' && text.front() != '-' && text.back() != '.' &&
         text.back() != '-' && text.find("--") == text.npos && text.find("..") == text.npos;
}

}  // namespace

bool is_commit(std::string_view text) {
  return text.size() == 40 && text.find_first_not_of("0123456789abcdef") == text.npos;
}

bool is_inside_path(std::string_view path) {
  if (path.empty() || path.size() > kMaxPathBytes) return false;
  for (const char c : path) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f || c == '\\') return false;
  }
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find('/', begin), path.size());
    const std::string_view part = path.substr(begin, end - begin);
    if (part.empty() || part == "." || part == ".." || part.size() > kMaxPartBytes) return false;
    begin = end + 1;
  }
  return true;
}

HubName parse_hub_name(std::string_view argument) {
  const auto refuse = [&](std::string_view what) {
    throw LoadError(argument, cat(what, "; expected hf:ORG/NAME, hf:ORG/NAME:FILE or hf:ORG/NAME@REVISION:FILE"),
                    ErrorCode::kInvalidArgument);
  };
  HubName name;
  name.argument = argument;
  std::string_view rest = argument;
  if (rest.starts_with(kHubPrefix)) rest.remove_prefix(kHubPrefix.size());
  const size_t colon = rest.find(':');
  if (colon != rest.npos) {
    name.file = rest.substr(colon + 1);
    if (!is_inside_path(name.file)) refuse("FILE is no path of a file in the repository");
    rest = rest.substr(0, colon);
  }
  const size_t at = rest.find('@');
  if (at != rest.npos) {
    name.revision = rest.substr(at + 1);
    if (!is_word(name.revision, "._-/") || name.revision.front() == '-' || !is_inside_path(name.revision)) {
      refuse("REVISION is no branch, tag or commit");
    }
    rest = rest.substr(0, at);
  }
  const size_t slash = std::min(rest.find('/'), rest.size());
  if (slash == rest.size() || rest.size() > kMaxRepoBytes || !is_repo_part(rest.substr(0, slash)) ||
      !is_repo_part(rest.substr(slash + 1))) {
    refuse("is no name of a model on the hub");
  }
  name.repo = rest;
  return name;
}

}  // namespace headrace
