#include "cluster/rank_process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <thread>

#include "base/check.h"

namespace headrace::cluster {
namespace {

/// Where a rank's process finds what it was given; memory only where ranks share it.
enum RankFd : int { kLifeFd = 3, kToNextFd, kFromPreviousFd, kNextMemoryFd, kPreviousMemoryFd, kFirstFreeFd };
/// Above all of these: copies from here cannot overwrite what is still to be copied.
constexpr int kFirstCopyFd = 64;

/// What is given to posix_spawn, and given back.
struct SpawnPlan {
  SpawnPlan() {
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&attributes);
  }
  ~SpawnPlan() {
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
  }
  SpawnPlan(const SpawnPlan&) = delete;
  SpawnPlan& operator=(const SpawnPlan&) = delete;

  /// `fd` of this process becomes `number` of the new one.
  void give(int fd, int number) {
    copies.emplace_back(::fcntl(fd, F_DUPFD_CLOEXEC, kFirstCopyFd));
    if (copies.back().get() < 0) {
      throw Error(ErrorCode::kUnavailable, cat("no descriptor for a rank's process: ", system_error_text(errno)));
    }
    posix_spawn_file_actions_adddup2(&files, copies.back().get(), number);
  }

  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  std::vector<Descriptor> copies;
};

std::string end_text(pid_t id, int status) {
  return WIFSIGNALED(status) ? cat("process ", id, " was ended by signal ", WTERMSIG(status))
                             : cat("process ", id, " ended with code ", WEXITSTATUS(status));
}

bool is_type(int fd, mode_t type) {
  struct stat status {};
  return ::fstat(fd, &status) == 0 && (status.st_mode & S_IFMT) == type;
}

Descriptor inherited(int fd) {
  ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  return Descriptor(fd);
}

}  // namespace

RankProcess::RankProcess(const std::string& program, RankPlace place, const RankDescriptors& descriptors) {
  std::array<int, 2> life{};
  if (::pipe2(life.data(), O_CLOEXEC) != 0) {
    throw Error(ErrorCode::kUnavailable, cat("no pipe to a rank's process: ", system_error_text(errno)));
  }
  life_ = Descriptor(life[1]);
  const Descriptor other_end(life[0]);
  // The system ends a process that asked for it together with the *thread* that started it (PR_SET_PDEATHSIG), and
  // whoever makes this object may be a thread that only loads a model.
  std::promise<int> promise;
  std::future<int> started = promise.get_future();
  starter_ = std::thread([&, promise = std::move(promise), done = done_.get_future()]() mutable {
    try {
      promise.set_value(start(program, place, descriptors, other_end.get()));
    } catch (...) {
      promise.set_exception(std::current_exception());
    }
    done.wait();
  });
  try {
    if (const int error = started.get(); error != 0) {
      throw Error(ErrorCode::kUnavailable,
                  cat(printable(program), " cannot be started for rank ", place.rank, ": ", system_error_text(error)));
    }
  } catch (...) {
    done_.set_value();
    starter_.join();
    throw;
  }
}

int RankProcess::start(const std::string& program, RankPlace place, const RankDescriptors& descriptors, int life) {
  SpawnPlan plan;
  posix_spawn_file_actions_addopen(&plan.files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&plan.files, STDERR_FILENO, STDOUT_FILENO);  // answers are rank 0's
  plan.give(life, kLifeFd);
  plan.give(descriptors.to_next.get(), kToNextFd);
  plan.give(descriptors.from_previous.get(), kFromPreviousFd);
  int first_free = kNextMemoryFd;
  if (descriptors.next_memory.get() >= 0) {
    plan.give(descriptors.next_memory.get(), kNextMemoryFd);
    plan.give(descriptors.previous_memory.get(), kPreviousMemoryFd);
    first_free = kFirstFreeFd;
  }
  posix_spawn_file_actions_addclosefrom_np(&plan.files, first_free);
  // Ctrl-C ends an answer and SIGTERM begins to drain: rank 0 needs the others for what is left to do.
  sigset_t blocked;
  sigemptyset(&blocked);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) sigaddset(&blocked, signal);
  posix_spawnattr_setsigmask(&plan.attributes, &blocked);
  posix_spawnattr_setflags(&plan.attributes, POSIX_SPAWN_SETSIGMASK);

  std::array<std::string, 6> words{"headrace", "rank", "--rank", cat(place.rank), "--ranks", cat(place.ranks)};
  std::array<char*, words.size() + 1> arguments{};
  for (size_t i = 0; i < words.size(); ++i) arguments[i] = words[i].data();
  return ::posix_spawn(&id_, program.c_str(), &plan.files, &plan.attributes, arguments.data(), environ);
}

RankProcess::~RankProcess() {
  if (end_.empty()) {
    ::kill(id_, SIGKILL);  // it has nothing to put away
    while (::waitpid(id_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  done_.set_value();
  starter_.join();
}

std::string RankProcess::end() {
  constexpr auto kPause = std::chrono::milliseconds(5);
  const Deadline deadline = after(1);
  while (end_.empty()) {
    int status = 0;
    const pid_t ended = ::waitpid(id_, &status, WNOHANG);
    if (ended == id_) end_ = end_text(id_, status);
    if (ended != 0 || std::chrono::steady_clock::now() >= deadline) break;
    std::this_thread::sleep_for(kPause);
  }
  return end_;
}

RankDescriptors inherited_rank_descriptors() {
  if (!is_type(kLifeFd, S_IFIFO) || !is_type(kToNextFd, S_IFSOCK) || !is_type(kFromPreviousFd, S_IFSOCK)) {
    throw Error(ErrorCode::kInvalidArgument,
                "headrace rank is started by headrace run and headrace serve with --tensor-parallel-size, not by hand");
  }
  // Also while it is stopped; the pipe tells of a process that had ended before this.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  std::thread([] {
    std::byte none;
    while (::read(kLifeFd, &none, 1) < 0 && errno == EINTR) {
    }
    ::_exit(0);
  }).detach();
  RankDescriptors given{.to_next = inherited(kToNextFd),
                        .from_previous = inherited(kFromPreviousFd),
                        .next_memory = {},
                        .previous_memory = {}};
  if (is_type(kNextMemoryFd, S_IFREG) && is_type(kPreviousMemoryFd, S_IFREG)) {
    given.next_memory = inherited(kNextMemoryFd);
    given.previous_memory = inherited(kPreviousMemoryFd);
  }
  return given;
}

}  // namespace headrace::cluster
