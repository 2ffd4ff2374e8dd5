#include "files/run_program.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/error.h"

extern char** environ;

namespace headrace {
namespace {

constexpr size_t kMaxText = 64 << 10;

class FileActions {
 public:
  FileActions() { posix_spawn_file_actions_init(&actions_); }
  FileActions(const FileActions&) = delete;
  FileActions& operator=(const FileActions&) = delete;
  ~FileActions() { posix_spawn_file_actions_destroy(&actions_); }
  [[nodiscard]] posix_spawn_file_actions_t* get() noexcept { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_{};
};

/// Reads to the end, so that the program never blocks on a full pipe; keeps the last kMaxText bytes.
std::string drain(int fd) {
  std::string text;
  std::array<char, 4096> buffer{};
  for (;;) {
    const ssize_t n = ::read(fd, buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return text;
    text.append(buffer.data(), static_cast<size_t>(n));
    if (text.size() > kMaxText) text.erase(0, text.size() - kMaxText);
  }
}

}  // namespace

ProgramResult run_program(const std::vector<std::string>& argv, Capture capture) {
  std::array<int, 2> pipe{};
  if (::pipe2(pipe.data(), O_CLOEXEC) != 0) {
    throw Error(ErrorCode::kUnavailable, cat(argv[0], ": no pipe: ", std::strerror(errno)));
  }
  FileActions actions;
  posix_spawn_file_actions_addopen(actions.get(), STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  if (capture == Capture::kStdout) {
    posix_spawn_file_actions_adddup2(actions.get(), pipe[1], STDOUT_FILENO);
  } else {
    posix_spawn_file_actions_adddup2(actions.get(), STDERR_FILENO, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(actions.get(), pipe[1], STDERR_FILENO);
  }
  std::vector<char*> args;
  for (const std::string& arg : argv) args.push_back(const_cast<char*>(arg.c_str()));
  args.push_back(nullptr);
  pid_t pid = 0;
  const int error = ::posix_spawnp(&pid, args[0], actions.get(), nullptr, args.data(), environ);
  ::close(pipe[1]);
  if (error != 0) {
    ::close(pipe[0]);
    throw Error(ErrorCode::kUnavailable, cat(argv[0], " cannot be started: ", std::strerror(error)));
  }
  ProgramResult result;
  result.text = drain(pipe[0]);
  ::close(pipe[0]);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

}  // namespace headrace
