#include "files/hub/hub_model.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <vector>

#include "base/error.h"
#include "files/hub/hub_cache.h"
#include "files/hub/hub_choice.h"
#include "files/hub/hub_client.h"
#include "files/hub/hub_download.h"
#include "files/json_file.h"
#include "files/safetensors.h"

namespace headrace {
namespace {

std::string path_of(const HubCache& cache, const std::string& commit, const HubChoice& choice) {
  const std::filesystem::path folder = cache.snapshot(commit);
  return (choice.gguf.empty() ? folder : folder / choice.gguf).string();
}

/// The shards of an index that is in the cache.
std::vector<std::string> shards_of(const HubCache& cache, const std::string& commit, const std::string& index) {
  const std::string path = (cache.snapshot(commit) / index).string();
  std::vector<std::string> shards;
  for (const auto& [shard, tensors] : parse_safetensors_index(path, read_text_file(path))) shards.push_back(shard);
  return shards;
}

/// The model as far as it was fetched before; nullopt where something of it is missing.
std::optional<std::string> find_cached(const HubCache& cache, const HubName& name) {
  const std::optional<std::string> commit = cache.commit_of(name.revision);
  if (!commit) return std::nullopt;
  const std::vector<std::string> files = cache.files_of(*commit);
  try {
    const HubChoice choice = choose_files(name, files);
    if (!choice.index.empty()) {
      for (const std::string& shard : shards_of(cache, *commit, choice.index)) {
        if (!cache.has_file(*commit, shard)) return std::nullopt;
      }
    }
    return path_of(cache, *commit, choice);
  } catch (const Error&) {
    return std::nullopt;  // what is here is no whole model
  }
}

std::string fetch(HubClient& client, const HubCache& cache, const HubName& name) {
  const HubListing listing = client.list();
  HubChoice choice = choose_files(name, listing.files);
  if (choice.is_default) {
    std::fprintf(stderr, "%s: holds several models, taking %s\n", name.argument.c_str(),
                 printable(choice.gguf).c_str());
  }
  for (const std::string& file : choice.files) fetch_hub_file(client, cache, name, listing.commit, file);
  if (!choice.index.empty()) {
    for (const std::string& shard : shards_of(cache, listing.commit, choice.index)) {
      if (!std::binary_search(listing.files.begin(), listing.files.end(), shard)) {
        throw LoadError(name.argument, cat("the repository lacks ", shard, ", which its ", choice.index, " names"),
                        ErrorCode::kNotFound);
      }
      fetch_hub_file(client, cache, name, listing.commit, shard);
    }
  }
  cache.set_commit(name.revision, listing.commit);  // last, so that it never names half a model
  return path_of(cache, listing.commit, choice);
}

}  // namespace

std::string fetch_hub_model(const std::string& argument) {
  const HubName name = parse_hub_name(argument);
  const HubSettings settings = hub_settings_from_environment();
  const HubCache cache(settings.cache, name.repo);
  if (settings.offline) {
    if (auto path = find_cached(cache, name)) return *std::move(path);
    throw LoadError(argument,
                    cat("HF_HUB_OFFLINE is set and it is not whole in ", settings.cache.string(),
                        "; unset it once to fetch the model"),
                    ErrorCode::kUnavailable);
  }
  // A commit's file never changes, so nobody need be asked.
  if (is_commit(name.revision) && name.file.ends_with(".gguf")) {
    if (auto path = find_cached(cache, name)) return *std::move(path);
  }
  HubClient client(settings, name);
  try {
    return fetch(client, cache, name);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kUnavailable) throw;
    auto path = find_cached(cache, name);
    if (!path) throw;
    std::fprintf(stderr, "%s; using what was fetched before\n", printable(error.message(), 1024).c_str());
    return *std::move(path);
  }
}

}  // namespace headrace
