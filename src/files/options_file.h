#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/options.h"

namespace headrace {

/// A group of "key: value" lines under a key of its own, or a list of such groups ("- name: a").
struct OptionsSection {
  std::string_view key;
  bool is_list = false;
  /// Options of the group, or of one more group, which begins at `place` ("nodes.yaml:3"); none: left unread.
  std::function<std::vector<Option>(const std::string& place)> add = {};
};

/// Reads a YAML or JSON file of "key: value" lines into the options' targets, under the keys of option_key(), and into
/// those of `sections`; a list of values is written as one, [1, 2]. What the file does not name keeps its value. Throws
/// Error, one line with file, line, key and what is accepted, for a file that cannot be read, is no such list or more
/// than one, or holds an unknown key, a key twice, a value that is not accepted, or a key or list with nothing in it.
void read_options_file(const std::string& path, std::span<const Option> options,
                       std::span<const OptionsSection> sections = {});

}  // namespace headrace
