#include "cluster/part_store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <set>
#include <utility>

#include "base/log.h"
#include "cluster/part_disk.h"
#include "cluster/part_journal.h"
#include "files/json_file.h"
#include "files/mapped_file.h"

namespace headrace::cluster {
namespace {

namespace fs = std::filesystem;

/// Written before it is brought to disk: what a loss of power costs at most, and seldom enough for slow disks.
constexpr int64_t kFlushBytes = int64_t{64} << 20;

fs::path manifest_path(const fs::path& own) { return own / "manifest.json"; }
fs::path journal_path(const fs::path& own) { return own / "journal"; }

bool is_hash(const std::string& text) {
  return text.size() == 32 && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

}  // namespace

PartStore::PartStore(const fs::path& folder, ModelManifest manifest, int64_t max_bytes)
    : folder_(folder), manifest_(std::move(manifest)), max_bytes_(max_bytes) {
  const std::string hash = manifest_.hash();
  own_ = folder_ / hash;
  used_ = use_folder(own_);
  create(hash);
  open_files();
  if (max_bytes_ > 0) allocated_bytes_ = allocated_bytes(folder_);
}

std::optional<ModelManifest> PartStore::kept_manifest(const fs::path& folder, const std::string& hash) {
  if (!is_hash(hash)) return std::nullopt;
  const fs::path path = manifest_path(folder / hash);
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return std::nullopt;
  try {
    ModelManifest manifest = parse_manifest(read_text_file(path.string()));
    if (manifest.hash() == hash) return manifest;
    log_warn("{}: not used: it is of another model", path.string());
  } catch (const Error& error) {
    log_warn("{}: not used: {}", path.string(), error.message());
  }
  return std::nullopt;
}

void PartStore::create(const std::string& hash) {
  std::error_code error;
  fs::create_directories(own_ / "model", error);
  if (error) {
    throw Error(ErrorCode::kUnavailable,
                cat(printable((own_ / "model").string()), ": cannot be made: ", error.message()));
  }
  if (!kept_manifest(folder_, hash)) replace_file(manifest_path(own_), manifest_json(manifest_));
}

void PartStore::open_files() {
  bool is_whole = true;
  for (const ManifestFile& file : manifest_.files) {
    const fs::path path = own_ / "model" / file.name;
    files_.push_back(open_file(path, O_RDWR | O_CREAT | O_NOFOLLOW));
    struct stat status = {};
    const bool is_known = ::fstat(files_.back().get(), &status) == 0;
    if (is_known && status.st_size == file.bytes) continue;
    is_whole = false;
    if (::ftruncate(files_.back().get(), static_cast<off_t>(file.bytes)) != 0) {
      throw Error(ErrorCode::kUnavailable, cat(printable(path.string()), ": cannot be given its size of ", file.bytes,
                                               " bytes: ", system_error_text(errno)));
    }
  }
  journal_ = open_file(journal_path(own_), O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW);
  // A file that was not there, or shortened, holds nothing of what the journal says.
  if (!is_whole && ::ftruncate(journal_.get(), 0) != 0) {
    throw Error(ErrorCode::kUnavailable,
                cat(printable(journal_path(own_).string()), ": cannot be emptied: ", system_error_text(errno)));
  }
  complete_ = read_journal(MappedFile(journal_path(own_).string()).bytes(), manifest_.ranges.size());
}

std::vector<uint32_t> PartStore::missing(const StageUnits& units) const {
  std::vector<uint32_t> ranges;
  for (uint32_t i = 0; i < manifest_.ranges.size(); ++i) {
    if (!complete_[i] && manifest_.needs(units, manifest_.ranges[i])) ranges.push_back(i);
  }
  return ranges;
}

int64_t PartStore::missing_bytes(const StageUnits& units) const {
  int64_t bytes = 0;
  for (const uint32_t range : missing(units)) bytes += manifest_.ranges[range].bytes;
  return bytes;
}

Result<std::monostate> PartStore::make_room(int64_t bytes) {
  if (max_bytes_ == 0) return std::monostate{};
  // Others may have written or removed: count before giving anything up.
  if (allocated_bytes_ + bytes > max_bytes_) allocated_bytes_ = allocated_bytes(folder_);
  while (allocated_bytes_ + bytes > max_bytes_) {
    if (!remove_least_recently_used(folder_, own_.filename().string())) {
      return Error(ErrorCode::kOutOfMemory, cat(printable(folder_.string()), ": holds ", allocated_bytes_,
                                                " bytes, and ", bytes, " more would be above its limit of ", max_bytes_,
                                                "; raise the limit, or give the worker a copy of the model"));
    }
    allocated_bytes_ = allocated_bytes(folder_);
  }
  allocated_bytes_ += bytes;
  return std::monostate{};
}

Result<std::monostate> PartStore::write(uint32_t range, std::span<const std::byte> bytes) {
  if (range >= manifest_.ranges.size()) {
    return Error(ErrorCode::kCorrupt, cat("range ", range, " of a model with ", manifest_.ranges.size()));
  }
  const ManifestRange& r = manifest_.ranges[range];
  const ManifestFile& file = manifest_.files[r.file];
  if (static_cast<int64_t>(bytes.size()) != r.bytes || digest_of(bytes) != r.digest) {
    return Error(ErrorCode::kCorrupt, cat(printable(file.name), ": the ", bytes.size(), " bytes sent for ", r.offset,
                                          " + ", r.bytes, " are not those of the manifest"));
  }
  if (complete_[range]) return std::monostate{};
  if (auto room = make_room(r.bytes); !room) return room;
  auto written = write_fully(files_[r.file].get(), bytes, r.offset, own_ / "model" / file.name);
  if (!written) return written;
  complete_[range] = true;
  unflushed_.push_back(range);
  unflushed_bytes_ += r.bytes;
  return unflushed_bytes_ >= kFlushBytes ? flush() : Result<std::monostate>(std::monostate{});
}

Result<std::monostate> PartStore::append(std::span<const std::byte> records) {
  auto written = write_fully(journal_.get(), records, -1, journal_path(own_));
  if (written && ::fdatasync(journal_.get()) != 0) {
    return Error(ErrorCode::kUnavailable,
                 cat(printable(journal_path(own_).string()), ": cannot be written: ", system_error_text(errno)));
  }
  return written;
}

Result<std::monostate> PartStore::flush() {
  if (unflushed_.empty()) return std::monostate{};
  std::set<uint32_t> written_files;
  std::vector<std::byte> records;
  for (const uint32_t range : unflushed_) {
    written_files.insert(manifest_.ranges[range].file);
    const auto record = encode_record(range, true);
    records.insert(records.end(), record.begin(), record.end());
  }
  const std::vector<uint32_t> ranges = std::exchange(unflushed_, {});
  unflushed_bytes_ = 0;
  const auto bring_to_disk = [&]() -> Result<std::monostate> {
    for (const uint32_t file : written_files) {
      if (::fdatasync(files_[file].get()) == 0) continue;
      return Error(
          errno == ENOSPC || errno == EDQUOT ? ErrorCode::kOutOfMemory : ErrorCode::kUnavailable,
          cat(printable(manifest_.files[file].name), ": cannot be brought to disk: ", system_error_text(errno)));
    }
    return append(records);
  };
  auto done = bring_to_disk();
  // After a failure nobody knows what is on disk, and the system does not say so twice.
  if (!done) std::ranges::for_each(ranges, [&](uint32_t range) { complete_[range] = false; });
  return done;
}

Result<std::string> PartStore::model_path(const StageUnits& units) {
  if (const size_t ranges = missing(units).size(); ranges > 0) {
    return Error(ErrorCode::kUnavailable, cat(printable(own_.string()), ": ", ranges, " ranges with ",
                                              missing_bytes(units), " bytes of the model are not there yet"));
  }
  if (auto flushed = flush(); !flushed) return flushed.error();
  const fs::path model = own_ / "model";
  return manifest_.entry.empty() ? model.string() : (model / manifest_.entry).string();
}

Result<int64_t> PartStore::forget_damaged(const StageUnits& units) {
  if (auto flushed = flush(); !flushed) return flushed.error();
  std::vector<MappedFile> mapped;
  for (const ManifestFile& file : manifest_.files) mapped.emplace_back((own_ / "model" / file.name).string());
  std::vector<std::byte> records;
  for (uint32_t i = 0; i < manifest_.ranges.size(); ++i) {
    const ManifestRange& r = manifest_.ranges[i];
    if (!complete_[i] || !manifest_.needs(units, r)) continue;
    const auto bytes = mapped[r.file].bytes().subspan(static_cast<size_t>(r.offset), static_cast<size_t>(r.bytes));
    if (digest_of(bytes) == r.digest) continue;
    complete_[i] = false;
    const auto record = encode_record(i, false);
    records.insert(records.end(), record.begin(), record.end());
  }
  if (auto appended = append(records); !appended) return appended.error();
  return static_cast<int64_t>(records.size() / kJournalRecordBytes);
}

}  // namespace headrace::cluster
