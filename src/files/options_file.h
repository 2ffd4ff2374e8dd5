#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/options.h"

namespace headrace {

/// Reads a YAML or JSON file of "key: value" lines into the options' targets, under the keys of option_key(); a list of
/// values is written as one, [1, 2]. Options that the file does not name keep their values. Throws Error, one line with
/// file, key and what is accepted, for a file that cannot be read, is no such list, or holds an unknown key, a key
/// twice or a value that is not accepted.
void read_options_file(const std::string& path, std::span<const Option> options);

/// The same for a file with a single key, `list`, whose value is a list of such groups of lines ("- name: a"). `add`
/// gives the options of one more entry, and is called for each. Throws as above, and where the list is empty.
void read_options_list(const std::string& path, std::string_view list, const std::function<std::vector<Option>()>& add);

}  // namespace headrace
