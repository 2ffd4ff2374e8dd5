#pragma once

#include <chrono>
#include <filesystem>
#include <string>

namespace headrace {

/// Where the hub is, who asks and where its files are kept: the environment variables of the hub's own tools.
struct HubSettings {
  std::string endpoint = "https://huggingface.co";  ///< HF_ENDPOINT, without a slash at the end
  std::string token;                                ///< HF_TOKEN, else the file HF_TOKEN_PATH, else HF_HOME/token
  bool offline = false;                             ///< HF_HUB_OFFLINE is 1, true, yes or on
  std::chrono::seconds stall_timeout{30};           ///< HF_HUB_DOWNLOAD_TIMEOUT
  /// HF_HUB_CACHE, else HF_HOME/hub; HF_HOME is else XDG_CACHE_HOME/huggingface or ~/.cache/huggingface.
  std::filesystem::path cache;
};

/// Throws Error(kInvalidArgument), which names the variable: an endpoint that is no address, a token that cannot be
/// sent, no folder for the cache.
[[nodiscard]] HubSettings hub_settings_from_environment();

}  // namespace headrace
