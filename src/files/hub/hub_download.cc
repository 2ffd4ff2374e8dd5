#include "files/hub/hub_download.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <optional>

#include "base/error.h"
#include "base/progress.h"
#include "files/hub/part_file.h"

namespace headrace {
namespace {

namespace fs = std::filesystem;

/// Whether an answer is the rest of the file from `offset` on: "bytes 100-199/200".
bool continues_at(const HttpResponse& response, int64_t offset) {
  const std::string& range = response.header("content-range");
  constexpr std::string_view kUnit = "bytes ";
  int64_t begin = -1;
  if (!range.starts_with(kUnit)) return false;
  const auto [end, error] = std::from_chars(range.data() + kUnit.size(), range.data() + range.size(), begin);
  return error == std::errc() && *end == '-' && begin == offset;
}

void check_space(const fs::path& folder, int64_t needed, const HubName& name, const std::string& path) {
  std::error_code error;
  const fs::space_info space = fs::space(folder, error);
  if (error || needed <= 0 || static_cast<uint64_t>(needed) <= space.available) return;
  throw LoadError(name.argument,
                  fmt::format("{} needs {:.1f} GB on the disk of {}, {:.1f} GB are free; free some or set HF_HUB_CACHE",
                              printable(path), static_cast<double>(needed) / 1e9, folder.string(),
                              static_cast<double>(space.available) / 1e9),
                  ErrorCode::kUnavailable);
}

/// Gets the missing bytes, in as many tries as that may take.
void fill(PartFile& part, HubClient& client, const HubName& name, const HubFile& file, const std::string& commit,
          ProgressLine& line) {
  int64_t most = part.size();
  for (Backoff backoff; part.size() < file.bytes;) {
    const int64_t before = part.size();
    bool is_start = true;
    const HttpResponse response =
        client.download(commit, file.path, before, [&](const HttpResponse& answer, std::string_view piece) {
          // A server may ignore the range, or answer another one.
          if (is_start && before > 0 && (answer.status != 206 || !continues_at(answer, before))) {
            part.clear();
            if (answer.status == 206) return false;
          }
          is_start = false;
          if (part.size() + static_cast<int64_t>(piece.size()) > file.bytes) {
            part.clear();
            throw LoadError(name.argument,
                            cat(file.path, " is longer than the ", file.bytes, " bytes that the hub says; try later"),
                            ErrorCode::kCorrupt);
          }
          part.append(piece);
          line.update(static_cast<double>(part.size()));
          return true;
        });
    if (part.size() == file.bytes) break;
    const bool is_whole =
        response.outcome == HttpOutcome::kAnswered && (response.status == 200 || response.status == 206);
    const bool is_refused = response.status == 416;  // the range; from the start it may do
    if (is_refused) part.clear();
    if (part.size() > most) backoff.reset();
    most = std::max(most, part.size());
    const bool goes_on = is_whole || is_refused || may_pass(response) || response.outcome != HttpOutcome::kAnswered;
    if (!goes_on || !backoff.wait(response)) client.fail(response, file.path);
  }
}

void fetch_blob(HubClient& client, const HubCache& cache, const HubName& name, const std::string& commit,
                const HubFile& file) {
  const fs::path blob = cache.blob(file.etag);
  std::error_code ignored;
  if (fs::exists(blob, ignored)) return;
  const FileLock lock(cache.lock_file(file.etag), [&] {
    std::fprintf(stderr, "%s: waiting for another process that fetches %s\n", name.argument.c_str(),
                 printable(file.path).c_str());
  });
  if (fs::exists(blob, ignored)) return;
  make_hub_folder(blob.parent_path());
  PartFile part(blob.string() + ".incomplete", file.etag, file.bytes);
  const bool is_resumed = part.size() > 0;
  check_space(blob.parent_path(), file.bytes - part.size(), name, file.path);
  ProgressLine line(cat("Fetching ", printable(file.path)), static_cast<double>(std::max<int64_t>(file.bytes, 1)),
                    ProgressUnit::kBytes);
  fill(part, client, name, file, commit, line);
  std::optional<std::string> digest = part.digest();
  if (digest && *digest != file.etag && is_resumed) {
    // Another program's part may be no beginning of the file.
    part.clear();
    fill(part, client, name, file, commit, line);
    digest = part.digest();
  }
  if (digest && *digest != file.etag) {
    part.remove();
    throw LoadError(name.argument,
                    cat("the digest of ", file.path, " is ", *digest, ", but the hub says ", file.etag,
                        "; what came is removed: run it again, or check the proxy"),
                    ErrorCode::kCorrupt);
  }
  part.move_to(blob);
}

}  // namespace

void fetch_hub_file(HubClient& client, const HubCache& cache, const HubName& name, const std::string& commit,
                    const std::string& path) {
  if (cache.has_file(commit, path)) return;
  const HubFile file = client.describe(commit, path);
  fetch_blob(client, cache, name, commit, file);
  cache.link(commit, path, file.etag);
}

}  // namespace headrace
