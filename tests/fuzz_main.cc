// Drives a fuzz target (x_fuzz.cc), for compilers without libFuzzer:
//   x_fuzz [--seconds N] [--seed S] CORPUS_FOLDER|FILE...
// Runs the given inputs, then mutations of them until the time is up (0: none). A target may throw headrace::Error;
// any other way out, a sanitizer's report, or 30 s on one input is a crash: the input is saved as crash-<hash>.
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "base/byte_order.h"
#include "base/error.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
extern "C" __attribute__((weak)) void __sanitizer_set_death_callback(void (*callback)());

namespace {

using Input = std::vector<uint8_t>;

constexpr unsigned kMaxSecondsPerInput = 30;
constexpr size_t kMaxInputBytes = 1 << 20;
constexpr int kMaxMutations = 8;  // on top of each other

// The input that runs now, for the handlers: plain data, since they may interrupt anything.
const uint8_t* g_data = nullptr;
size_t g_size = 0;

/// Saves the current input. Only async-signal-safe calls.
void save_input() {
  uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a
  for (size_t i = 0; i < g_size; ++i) hash = (hash ^ g_data[i]) * 0x100000001b3u;
  std::array<char, 32> name{"crash-"};
  for (size_t i = 0; i < 16; ++i) name[6 + i] = "0123456789abcdef"[(hash >> (60 - 4 * i)) & 15u];
  const int fd = ::open(name.data(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  bool saved = fd >= 0;
  for (size_t done = 0; saved && done < g_size;) {
    const ssize_t n = ::write(fd, g_data + done, g_size - done);
    saved = n > 0;
    done += saved ? static_cast<size_t>(n) : 0;
  }
  const std::string_view text = saved ? "\nfuzz: the input is saved as " : "\nfuzz: the input could not be saved as ";
  [[maybe_unused]] ssize_t ignored = ::write(STDERR_FILENO, text.data(), text.size());
  ignored = ::write(STDERR_FILENO, name.data(), 22);
  ignored = ::write(STDERR_FILENO, "\n", 1);
}

void on_signal(int signal) {
  save_input();
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

void install_handlers() {
  const bool sanitized = __sanitizer_set_death_callback != nullptr;
  if (sanitized) __sanitizer_set_death_callback(save_input);  // these handle SIGSEGV and its like themselves
  for (const int signal : {SIGABRT, SIGALRM}) ::signal(signal, on_signal);
  if (sanitized) return;
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) ::signal(signal, on_signal);
}

/// Whether the target took the input, as opposed to an Error. Any other exception ends in std::terminate.
bool run_one(const Input& input) noexcept {
  // An exact copy, so that the address sanitizer sees the first byte past the end.
  const Input exact(input.begin(), input.end());
  g_data = exact.data();
  g_size = exact.size();
  ::alarm(kMaxSecondsPerInput);
  bool accepted = true;
  try {
    LLVMFuzzerTestOneInput(g_data, g_size);
  } catch (const headrace::Error&) {
    accepted = false;
  }
  ::alarm(0);
  return accepted;
}

class Mutator {
 public:
  Mutator(const std::vector<Input>& corpus, uint64_t seed) : corpus_(corpus), random_(seed) {}

  Input next() {
    Input input = corpus_[below(corpus_.size())];
    for (size_t n = 1 + below(kMaxMutations); n > 0; --n) mutate(input);
    if (input.size() > kMaxInputBytes) input.resize(kMaxInputBytes);
    return input;
  }

 private:
  size_t below(size_t n) { return static_cast<size_t>(random_() % n); }

  void mutate(Input& input) {
    if (input.empty()) {
      input.push_back(static_cast<uint8_t>(random_()));
      return;
    }
    const size_t at = position(input);
    switch (below(8)) {
      case 0:
        input[at] = static_cast<uint8_t>(input[at] ^ (1u << below(8)));
        break;
      case 1:
        input[at] = static_cast<uint8_t>(random_());
        break;
      case 2:
        put_integer(input, at, interesting());
        break;
      case 3:
        nudge_integer(input, at);
        break;
      case 4:
        input.resize(at);
        break;
      case 5:
        splice(input, at);
        break;
      case 6:
        copy_block(input, at);
        break;
      default:
        erase_block(input, at);
        break;
    }
  }

  /// Anywhere, but every other time near the front, where formats keep their heads.
  size_t position(const Input& input) {
    return below(2) == 0 ? below(input.size()) : below(std::min<size_t>(input.size(), 256));
  }

  uint64_t interesting() {
    const uint64_t power = uint64_t{1} << below(64);
    switch (below(5)) {
      case 0:
        return below(17);
      case 1:
        return power;
      case 2:
        return power - 1;
      case 3:
        return ~uint64_t{0} - below(32);
      default:
        return power + below(64);
    }
  }

  /// The low 1, 2, 4 or 8 bytes of `value`, little-endian.
  void put_integer(Input& input, size_t at, uint64_t value) {
    const size_t width = std::min(size_t{1} << below(4), input.size() - at);
    std::memcpy(input.data() + at, &value, width);
  }

  void nudge_integer(Input& input, size_t at) {
    if (input.size() - at < 8) return;
    const uint64_t value = headrace::load_le<uint64_t>(input.data() + at);
    put_integer(input, at, value + below(33) - 16);
  }

  void splice(Input& input, size_t at) {
    const Input& other = corpus_[below(corpus_.size())];
    const size_t from = other.empty() ? 0 : below(other.size());
    input.resize(at);
    input.insert(input.end(), other.begin() + static_cast<ptrdiff_t>(from), other.end());
  }

  /// Copies a block to another place, over what is there or in between.
  void copy_block(Input& input, size_t from) {
    const size_t size = 1 + below(std::min<size_t>(input.size() - from, 64));
    const Input block(input.begin() + static_cast<ptrdiff_t>(from),
                      input.begin() + static_cast<ptrdiff_t>(from + size));
    const size_t to = below(input.size());
    if (below(2) == 0) {
      input.insert(input.begin() + static_cast<ptrdiff_t>(to), block.begin(), block.end());
    } else {
      std::copy_n(block.begin(), std::min(size, input.size() - to), input.begin() + static_cast<ptrdiff_t>(to));
    }
  }

  void erase_block(Input& input, size_t at) {
    const size_t size = 1 + below(std::min<size_t>(input.size() - at, 64));
    input.erase(input.begin() + static_cast<ptrdiff_t>(at), input.begin() + static_cast<ptrdiff_t>(at + size));
  }

  const std::vector<Input>& corpus_;
  std::mt19937_64 random_;
};

Input read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

/// The files given, and those in the folders given, sorted: a seed then means the same on every machine.
std::vector<Input> read_corpus(const std::vector<std::string>& arguments) {
  std::vector<std::filesystem::path> paths;
  for (const std::string& argument : arguments) {
    if (std::filesystem::is_directory(argument)) {
      for (const auto& entry : std::filesystem::directory_iterator(argument)) paths.push_back(entry.path());
    } else if (std::filesystem::exists(argument)) {
      paths.emplace_back(argument);
    } else {
      std::fprintf(stderr, "fuzz: %s: no such file or folder\n", argument.c_str());
      std::exit(2);
    }
  }
  std::sort(paths.begin(), paths.end());
  std::vector<Input> corpus;
  for (const auto& path : paths) corpus.push_back(read_file(path));
  return corpus;
}

bool parse_number(std::string_view text, uint64_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

int main(int argc, char** argv) {
  uint64_t seconds = 0;
  uint64_t seed = std::random_device{}();
  std::vector<std::string> arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string_view flag = argv[i];
    if (flag == "--seconds" || flag == "--seed") {
      if (i + 1 < argc && parse_number(argv[i + 1], flag == "--seed" ? seed : seconds)) {
        ++i;
        continue;
      }
      std::fprintf(stderr, "usage: %s [--seconds N] [--seed S] CORPUS_FOLDER|FILE...\n", argv[0]);
      return 2;
    }
    arguments.emplace_back(flag);
  }
  const std::vector<Input> corpus = read_corpus(arguments);
  if (corpus.empty()) {
    std::fprintf(stderr, "fuzz: no corpus\n");
    return 2;
  }
  install_handlers();
  std::printf("fuzz: seed %llu\n", static_cast<unsigned long long>(seed));
  std::fflush(stdout);  // a crash must not lose it

  uint64_t runs = 0;
  uint64_t accepted = 0;
  for (const Input& input : corpus) {
    accepted += run_one(input);
    ++runs;
  }
  Mutator mutator(corpus, seed);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  while (std::chrono::steady_clock::now() < end) {
    accepted += run_one(mutator.next());
    ++runs;
  }
  std::printf("fuzz: %llu runs, %llu accepted, no crash\n", static_cast<unsigned long long>(runs),
              static_cast<unsigned long long>(accepted));
  return 0;
}
