#include "server/log_writer.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace headrace::server {
namespace {

constexpr size_t kMaxWaiting = size_t{4} << 20;
constexpr size_t kPiece = 4096;  // a pipe that poll() calls writable takes as much without waiting (PIPE_BUF)

}  // namespace

LogWriter::LogWriter(int fd) : fd_(fd), thread_([this] { run(); }) {}

LogWriter::~LogWriter() {
  {
    const std::scoped_lock lock(mutex_);
    stop_ = true;
    give_up_at_ = Clock::now() + std::chrono::seconds(1);
  }
  wake_.notify_one();
  thread_.join();
}

void LogWriter::add(std::string line) {
  line += '\n';
  {
    const std::scoped_lock lock(mutex_);
    if (waiting_.size() + line.size() > kMaxWaiting) {
      ++dropped_;
      return;
    }
    waiting_ += line;
  }
  wake_.notify_one();
}

int64_t LogWriter::take_dropped() {
  const std::scoped_lock lock(mutex_);
  return std::exchange(dropped_, 0);
}

bool LogWriter::past_the_end() {
  const std::scoped_lock lock(mutex_);
  return stop_ && Clock::now() >= give_up_at_;
}

void LogWriter::run() {
  for (std::string text;;) {
    text.clear();
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [this] { return stop_ || !waiting_.empty(); });
      if (waiting_.empty()) return;
      text.swap(waiting_);
    }
    if (!write_all(text)) return;
  }
}

bool LogWriter::write_all(const std::string& text) {
  for (size_t done = 0; done < text.size();) {
    pollfd state{.fd = fd_, .events = POLLOUT, .revents = 0};
    if (poll(&state, 1, 100) <= 0) {
      if (past_the_end()) return false;
      continue;
    }
    const ssize_t written = write(fd_, text.data() + done, std::min(kPiece, text.size() - done));
    if (written < 0 && errno != EINTR && errno != EAGAIN) return true;  // nobody reads: these lines are lost
    done += static_cast<size_t>(std::max<ssize_t>(written, 0));
  }
  return true;
}

}  // namespace headrace::server
