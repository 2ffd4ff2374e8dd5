#include "apps/batch_files.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <utility>

#include "base/cat.h"
#include "base/error.h"

namespace headrace {
namespace {

constexpr std::string_view kResultBegin = R"({"id":"batch_)";

/// Whether `tail` may be a line of results that was not written to its end.
bool is_torn_result(std::string_view tail) {
  return tail.substr(0, kResultBegin.size()) == kResultBegin.substr(0, std::min(tail.size(), kResultBegin.size()));
}

}  // namespace

BatchResults::BatchResults(const std::string& path, const std::string& input) : path_(path) {
  std::error_code none;
  if (std::filesystem::equivalent(path, input, none)) {
    throw LoadError(path, "is the file of requests too; name another file for the results");
  }
  const std::filesystem::file_status status = std::filesystem::status(path, none);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
    throw LoadError(path, "is no ordinary file, which results need so that a run can go on after a stop");
  }
  open();
  try {
    if (!read()) keep_final();
  } catch (...) {
    std::fclose(file_);
    throw;
  }
}

void BatchResults::open() {
  file_ = std::fopen(path_.c_str(), "a+b");
  if (file_ == nullptr) throw LoadError(path_, cat("cannot be written: ", std::strerror(errno)));
  if (flock(fileno(file_), LOCK_EX | LOCK_NB) == 0) return;
  std::fclose(file_);
  throw LoadError(path_, "another run writes its results there");
}

BatchResults::~BatchResults() { std::fclose(file_); }

bool BatchResults::read() {
  std::ifstream file(path_, std::ios::binary);
  std::string text;
  off_t whole = 0;
  bool torn = false;
  bool all_final = true;
  while (std::getline(file, text)) {
    torn = file.eof();  // no line break at its end
    const openai::BatchResult result = torn ? openai::BatchResult() : openai::read_batch_result(text);
    if (torn ? !is_torn_result(text) : result.custom_id.empty()) {
      throw LoadError(path_, "holds something else than results of a batch; name another file");
    }
    if (torn) break;
    if (result.is_final) done_.insert(result.custom_id);
    all_final = all_final && result.is_final;
    whole += static_cast<off_t>(text.size()) + 1;
  }
  if (torn && ftruncate(fileno(file_), whole) != 0)
    throw LoadError(path_, cat("cannot be cut: ", std::strerror(errno)));
  return all_final;
}

void BatchResults::keep_final() {
  // Beside the old file until it is whole: a run that is killed meanwhile loses nothing.
  const std::string path = path_ + ".kept";
  std::FILE* const kept = std::fopen(path.c_str(), "wb");
  if (kept == nullptr) throw LoadError(path, cat("cannot be written: ", std::strerror(errno)));
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> old(std::exchange(file_, kept), std::fclose);  // and its lock
  (void)flock(fileno(kept), LOCK_EX | LOCK_NB);
  std::ifstream file(path_, std::ios::binary);
  for (std::string text; std::getline(file, text);) {
    if (openai::read_batch_result(text).is_final) add(text);
  }
  if (fsync(fileno(kept)) != 0 || std::rename(path.c_str(), path_.c_str()) != 0) {
    throw LoadError(path_, cat("cannot be replaced: ", std::strerror(errno)));
  }
}

void BatchResults::add(const std::string& line) {
  const std::string text = line + "\n";
  if (std::fwrite(text.data(), 1, text.size(), file_) != text.size() || std::fflush(file_) != 0) {
    throw LoadError(path_, cat("cannot be written: ", std::strerror(errno)), ErrorCode::kUnavailable);
  }
}

std::deque<openai::BatchLine> read_batch(const std::string& path, const std::set<std::string>& done) {
  std::error_code none;
  if (std::filesystem::is_directory(path, none)) throw LoadError(path, "is a folder, expected a file of requests");
  std::ifstream file(path, std::ios::binary);
  if (!file) throw LoadError(path, cat("cannot be read: ", std::strerror(errno)), ErrorCode::kNotFound);
  std::deque<openai::BatchLine> lines;
  std::set<std::string> seen;
  std::string text;
  for (int64_t number = 1; std::getline(file, text); ++number) {
    if (text.find_first_not_of(" \t\r") == std::string::npos) continue;
    try {
      openai::BatchLine line = openai::read_batch_line(text);
      if (!seen.insert(line.custom_id).second) {
        throw Error(ErrorCode::kInvalidArgument, cat("custom_id '", printable(line.custom_id), "' stands there twice"));
      }
      if (!done.contains(line.custom_id)) lines.push_back(std::move(line));
    } catch (const Error& error) {
      throw LoadError(cat(path, ":", number), error.message());
    }
  }
  if (file.bad()) throw LoadError(path, "cannot be read to its end");
  return lines;
}

}  // namespace headrace
