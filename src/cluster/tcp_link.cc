#include "cluster/tcp_link.h"

#include <sys/socket.h>

#include <algorithm>
#include <new>

namespace headrace::cluster {
namespace {

/// Parts that go to the system in one call.
constexpr size_t kMaxParts = 64;
/// A payload's vector grows by as much as arrives, in steps that stay in the second-level cache: growing it sets it to
/// zero first, and a header alone must not cost memory.
constexpr size_t kGrowBytes = 256 << 10;
/// What the peer may have sent before the end and nobody read: with it unread, the system would reset the connection,
/// and the peer might lose our last frame.
constexpr size_t kMaxDrainBytes = 256 << 10;

/// Takes `n` bytes from the front; returns the parts that are left.
std::span<iovec> without_front(std::span<iovec> parts, size_t n) {
  while (!parts.empty() && n >= parts.front().iov_len) {
    n -= parts.front().iov_len;
    parts = parts.subspan(1);
  }
  if (n > 0) {
    parts.front().iov_base = static_cast<std::byte*>(parts.front().iov_base) + n;
    parts.front().iov_len -= n;
  }
  return parts;
}

iovec part_of(std::span<const std::byte> bytes) {
  return {const_cast<std::byte*>(bytes.data()), bytes.size()};  // iovec serves reading as well, so it has no const
}

}  // namespace

TcpLink::~TcpLink() {
  close();
  std::array<std::byte, 4096> unread;
  for (size_t total = 0; total < kMaxDrainBytes;) {
    const ssize_t n = ::recv(fd_.get(), unread.data(), unread.size(), MSG_DONTWAIT);
    if (n <= 0) break;
    total += static_cast<size_t>(n);
  }
}

void TcpLink::close() noexcept {
  // Wakes poll in both directions; the descriptor itself stays until nobody can be using it.
  if (!closed_.exchange(true)) ::shutdown(fd_.get(), SHUT_RDWR);
}

Error TcpLink::fault(ErrorCode code, const std::string& what) const { return Error(code, cat(peer_, ": ", what)); }

Error TcpLink::unavailable(const std::string& what) const {
  return fault(ErrorCode::kUnavailable, closed_.load(std::memory_order_relaxed) ? "the link was closed here" : what);
}

LinkFigures TcpLink::figures() const noexcept {
  return {.bytes_sent = sent_.bytes.load(std::memory_order_relaxed),
          .bytes_received = received_.bytes.load(std::memory_order_relaxed),
          .frames_sent = sent_.frames.load(std::memory_order_relaxed),
          .frames_received = received_.frames.load(std::memory_order_relaxed)};
}

Result<std::monostate> TcpLink::send(FrameHeader header, std::span<const std::span<const std::byte>> parts,
                                     Deadline deadline) {
  if (sent_.broken) return unavailable("the link broke while sending before");
  size_t payload_bytes = 0;
  for (const std::span<const std::byte> part : parts) payload_bytes += part.size();
  if (payload_bytes > static_cast<size_t>(max_payload_bytes(header.kind))) {
    return fault(ErrorCode::kInvalidArgument,
                 cat("frame of ", payload_bytes, " bytes, at most ", max_payload_bytes(header.kind), " can be sent"));
  }
  header.payload_bytes = static_cast<int64_t>(payload_bytes);
  const auto head = encode_header(header);

  std::array<iovec, kMaxParts> batch;
  batch[0] = part_of(head);
  size_t n = 1;
  Result<std::monostate> done = std::monostate{};
  for (size_t i = 0; i < parts.size() && done.ok(); ++i) {
    if (parts[i].empty()) continue;
    if (n == batch.size()) {
      done = write_all(batch, deadline);
      n = 0;
    }
    batch[n++] = part_of(parts[i]);
  }
  if (done.ok()) done = write_all(std::span(batch).first(n), deadline);
  if (!done.ok()) {
    sent_.broken = true;
    return done;
  }
  sent_.frames.fetch_add(1, std::memory_order_relaxed);
  return done;
}

Result<std::monostate> TcpLink::write_all(std::span<iovec> parts, Deadline deadline) {
  while (!parts.empty()) {
    const Progress progress = stream_->write_some(parts);
    switch (progress.kind) {
      case Progress::Kind::kMoved:
        sent_.bytes.fetch_add(static_cast<int64_t>(progress.bytes), std::memory_order_relaxed);
        parts = without_front(parts, progress.bytes);
        break;
      case Progress::Kind::kWaitReadable:
      case Progress::Kind::kWaitWritable: {
        const Wait what = progress.kind == Progress::Kind::kWaitReadable ? Wait::kReadable : Wait::kWritable;
        if (!wait_for(fd_.get(), what, deadline))
          return fault(ErrorCode::kTimeout, "did not take what was sent before the deadline");
        break;
      }
      case Progress::Kind::kEnded:
        return unavailable("the peer ended the connection");
      case Progress::Kind::kFailed:
        return unavailable(progress.why);
    }
  }
  return std::monostate{};
}

Result<std::monostate> TcpLink::read_all(std::span<std::byte> into, bool frame_began, Deadline deadline) {
  while (!into.empty()) {
    // What had come before the close can still be read from the socket, but nobody wants it.
    if (closed_.load(std::memory_order_relaxed)) return unavailable("");
    const Progress progress = stream_->read_some(into);
    switch (progress.kind) {
      case Progress::Kind::kMoved:
        received_.bytes.fetch_add(static_cast<int64_t>(progress.bytes), std::memory_order_relaxed);
        into = into.subspan(progress.bytes);
        frame_began = true;
        break;
      case Progress::Kind::kWaitReadable:
      case Progress::Kind::kWaitWritable: {
        const Wait what = progress.kind == Progress::Kind::kWaitReadable ? Wait::kReadable : Wait::kWritable;
        if (wait_for(fd_.get(), what, deadline)) break;
        if (!frame_began) return fault(ErrorCode::kTimeout, "sent nothing before the deadline");
        received_.broken = true;
        return fault(ErrorCode::kTimeout, "sent a part of a frame, and not the rest before the deadline");
      }
      case Progress::Kind::kEnded:
        received_.broken = true;
        return unavailable(frame_began ? "the peer ended the connection inside a frame"
                                       : "the peer ended the connection");
      case Progress::Kind::kFailed:
        received_.broken = true;
        return unavailable(progress.why);
    }
  }
  return std::monostate{};
}

Result<FrameHeader> TcpLink::receive(std::vector<std::byte>& payload, Deadline deadline) {
  if (received_.broken) return unavailable("the link broke while receiving before");
  Result<FrameHeader> header = read_frame(payload, deadline);
  if (header.ok()) received_.frames.fetch_add(1, std::memory_order_relaxed);
  return header;
}

Result<FrameHeader> TcpLink::read_frame(std::vector<std::byte>& payload, Deadline deadline) {
  std::array<std::byte, kFrameHeaderBytes> head;
  if (const auto read = read_all(head, false, deadline); !read) return read.error();
  const Result<FrameHeader> header = decode_header(head);
  if (!header) {
    received_.broken = true;
    return fault(header.error().code(), header.error().message());
  }
  if (header.value().payload_bytes > max_payload_bytes_) {
    received_.broken = true;
    return fault(ErrorCode::kCorrupt, cat("frame of ", header.value().payload_bytes, " bytes, expected at most ",
                                          max_payload_bytes_, " now"));
  }
  const auto size = static_cast<size_t>(header.value().payload_bytes);
  try {
    if (payload.capacity() < size) {
      payload.clear();  // nothing in it is worth copying
      payload.reserve(size);
    }
  } catch (const std::bad_alloc&) {
    received_.broken = true;
    return fault(ErrorCode::kOutOfMemory, cat("no memory for a frame of ", size, " bytes"));
  }
  if (payload.size() > size) payload.resize(size);
  for (size_t done = 0; done < size;) {
    if (done == payload.size()) payload.resize(std::min(size, done + kGrowBytes));  // within the capacity
    if (const auto read = read_all(std::span(payload).subspan(done), true, deadline); !read) return read.error();
    done = payload.size();
  }
  return header;
}

}  // namespace headrace::cluster
