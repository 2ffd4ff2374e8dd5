#pragma once

#include <string>

#include "files/hub/hub_cache.h"
#include "files/hub/hub_client.h"

namespace headrace {

/// Sees that a file of a commit is in the cache, its digest checked: fetches its blob where that is not there, going on
/// where a broken transfer ended, and links it into the snapshot. Two processes that want one file take turns.
/// Progress goes to standard error. Throws LoadError: what HubClient::fail says, kUnavailable where the disk is too
/// small, kCorrupt for a wrong digest (what came is removed).
void fetch_hub_file(HubClient& client, const HubCache& cache, const HubName& name, const std::string& commit,
                    const std::string& path);

}  // namespace headrace
