#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "base/error.h"
#include "cluster/tcp_socket.h"

namespace headrace::cluster {

/// Bytes of the disk that a folder and all below it take: allocated blocks, so that holes do not count.
[[nodiscard]] int64_t allocated_bytes(const std::filesystem::path& folder);

/// Removes the folder in `folder` that was used least recently (by the time of its file "used"), but not `kept` and
/// none that somebody uses. Its journal goes first: what is left after a kill says of nothing that it is there. False
/// where there is none to remove.
[[nodiscard]] bool remove_least_recently_used(const std::filesystem::path& folder, const std::string& kept);

/// Opens a folder's file "used", notes the time, and holds a lock on it that keeps the folder from being removed.
/// Throws Error where it cannot be.
[[nodiscard]] Descriptor use_folder(const std::filesystem::path& folder);

/// Opens (and makes) a file. Throws Error, naming it and the system's word.
[[nodiscard]] Descriptor open_file(const std::filesystem::path& path, int flags);

/// All of `bytes` at `offset`; appended where that is below 0. kOutOfMemory for a full disk, else kUnavailable.
[[nodiscard]] Result<std::monostate> write_fully(int fd, std::span<const std::byte> bytes, int64_t offset,
                                                 const std::filesystem::path& path);

/// Writes a file beside its place, brings it to disk and renames it. Throws Error.
void replace_file(const std::filesystem::path& path, std::string_view text);

}  // namespace headrace::cluster
