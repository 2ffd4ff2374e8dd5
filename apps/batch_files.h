#pragma once

#include <cstdio>
#include <deque>
#include <set>
#include <string>

#include "openai/batch_line.h"

namespace headrace {

/// The results of a batch: a file that only grows, and that one run at a time writes.
class BatchResults {
 public:
  /// Opens or makes the file. What a run that was killed left half written is cut off, and results that another try may
  /// better are taken out. Throws Error for what is no file of results, for `input` itself, and while another run has
  /// it.
  BatchResults(const std::string& path, const std::string& input);
  ~BatchResults();
  BatchResults(const BatchResults&) = delete;
  BatchResults& operator=(const BatchResults&) = delete;

  /// Ids that have a result.
  [[nodiscard]] const std::set<std::string>& done() const noexcept { return done_; }
  /// Adds a line and hands it to the system. Throws Error where it cannot be written whole.
  void add(const std::string& line);

 private:
  void open();
  /// Notes whose results are there; false: some of them are not final.
  [[nodiscard]] bool read();
  /// Puts a file of the final results in the place of this one.
  void keep_final();

  std::string path_;
  std::FILE* file_ = nullptr;
  std::set<std::string> done_;
};

/// The lines of `path` that are not in `done`, all checked: a fault is told before hours of work, not after. Throws
/// LoadError that names the line.
[[nodiscard]] std::deque<openai::BatchLine> read_batch(const std::string& path, const std::set<std::string>& done);

}  // namespace headrace
