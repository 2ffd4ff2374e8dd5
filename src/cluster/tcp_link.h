#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "cluster/byte_stream.h"
#include "cluster/link.h"
#include "cluster/tcp_socket.h"

namespace headrace::cluster {

/// Frames over a connected socket.
class TcpLink final : public Link {
 public:
  /// `stream` moves the bytes of `fd`.
  TcpLink(Descriptor fd, std::unique_ptr<ByteStream> stream, std::string peer)
      : fd_(std::move(fd)), stream_(std::move(stream)), peer_(std::move(peer)) {}
  ~TcpLink() override;

  [[nodiscard]] Result<std::monostate> send(FrameHeader header, std::span<const std::span<const std::byte>> parts,
                                            Deadline deadline) override;
  [[nodiscard]] Result<FrameHeader> receive(std::vector<std::byte>& payload, Deadline deadline) override;
  void limit_payload(int64_t bytes) noexcept override { max_payload_bytes_ = bytes; }
  void close() noexcept override;
  [[nodiscard]] const std::string& peer() const noexcept override { return peer_; }
  [[nodiscard]] LinkFigures figures() const noexcept override;

 private:
  /// What one direction has moved, and whether it can go on.
  struct Direction {
    std::atomic<int64_t> bytes{0};
    std::atomic<int64_t> frames{0};
    bool broken = false;
  };

  [[nodiscard]] Error fault(ErrorCode code, const std::string& what) const;
  [[nodiscard]] Error unavailable(const std::string& what) const;
  [[nodiscard]] Result<std::monostate> write_all(std::span<iovec> parts, Deadline deadline);
  [[nodiscard]] Result<std::monostate> read_all(std::span<std::byte> into, bool frame_began, Deadline deadline);
  [[nodiscard]] Result<FrameHeader> read_frame(std::vector<std::byte>& payload, Deadline deadline);

  Descriptor fd_;
  std::unique_ptr<ByteStream> stream_;
  std::string peer_;
  Direction sent_, received_;
  int64_t max_payload_bytes_ = INT64_MAX;
  std::atomic<bool> closed_{false};
};

}  // namespace headrace::cluster
