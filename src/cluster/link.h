#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/frame.h"

namespace headrace::cluster {

using Deadline = std::chrono::steady_clock::time_point;
[[nodiscard]] inline Deadline after(double seconds) {
  return std::chrono::steady_clock::now() +
         std::chrono::duration_cast<std::chrono::steady_clock::duration>(std::chrono::duration<double>(seconds));
}

struct LinkFigures {
  int64_t bytes_sent = 0, bytes_received = 0;  ///< headers included
  int64_t frames_sent = 0, frames_received = 0;
};

/// A connection between two machines that carries frames, in order. Threading: one thread sends, one receives (it may
/// be the same); close() and figures() from any thread. The hot path does not throw.
class Link {
 public:
  virtual ~Link() = default;

  /// Sends a frame whose payload is `parts`, one after the other, without copying them (header.payload_bytes is filled
  /// in here). kTimeout when the peer has not taken all of it by the deadline, kUnavailable when the connection is
  /// gone; the link is of no more use after either. kInvalidArgument, nothing sent, for more than the kind may have.
  [[nodiscard]] virtual Result<std::monostate> send(FrameHeader header,
                                                    std::span<const std::span<const std::byte>> parts,
                                                    Deadline deadline) = 0;
  /// The next frame. `payload` keeps its capacity from frame to frame. kTimeout when no frame *began* by the deadline
  /// (the link can be used on) or when one that began was not complete then (it cannot), kUnavailable at the end of the
  /// connection, kCorrupt for bytes that are no frame.
  [[nodiscard]] virtual Result<FrameHeader> receive(std::vector<std::byte>& payload, Deadline deadline) = 0;
  /// From now on receive() refuses longer payloads (kCorrupt), whatever their kind allows: peers that nobody knows yet.
  /// Called by the thread that receives.
  virtual void limit_payload(int64_t bytes) noexcept = 0;
  /// Ends the connection; whoever sends or receives gets kUnavailable.
  virtual void close() noexcept = 0;

  [[nodiscard]] virtual const std::string& peer() const noexcept = 0;  ///< "10.0.0.2:8100", for messages
  [[nodiscard]] virtual LinkFigures figures() const noexcept = 0;
};

/// Which certificates secure links by TLS 1.3; empty: none does. The authority is the cluster's own: whoever has a
/// certificate of it belongs to the cluster, under whatever name, so that addresses may change.
struct TlsFiles {
  std::string certificate, key;  ///< PEM; of this process
  std::string authority;         ///< PEM; what the peer's certificate must be signed by (both sides: mutual TLS)
  [[nodiscard]] bool any() const noexcept { return !certificate.empty() || !key.empty() || !authority.empty(); }
};

/// Makes links over TCP, with keep-alive and without delay (TCP_NODELAY). Names are resolved; IPv4 and IPv6.
class Network {
 public:
  virtual ~Network() = default;
  /// `address`: "host:port", "[::1]:port". kUnavailable (naming the address and the system's word) or kTimeout.
  [[nodiscard]] virtual Result<std::unique_ptr<Link>> connect(const std::string& address, Deadline deadline) = 0;
};

/// Takes connections. Threading: accept() on one thread, close() from any.
class Listener {
 public:
  virtual ~Listener() = default;
  /// The next connection, TLS done; kTimeout, kUnavailable after close(). A peer that does not finish its TLS handshake
  /// within 5 s does not keep others from being accepted.
  [[nodiscard]] virtual Result<std::unique_ptr<Link>> accept(Deadline deadline) = 0;
  virtual void close() noexcept = 0;
  [[nodiscard]] virtual uint16_t port() const noexcept = 0;
};

/// Throw Error: kInvalidArgument for an address or certificate that cannot be, kUnavailable where the port is taken.
/// `flag`: that gave the address, "--listen": errors about it begin so.
[[nodiscard]] std::unique_ptr<Network> make_tcp_network(const TlsFiles& tls);
[[nodiscard]] std::unique_ptr<Listener> listen_tcp(const std::string& address, const TlsFiles& tls,
                                                   std::string_view flag = {});

}  // namespace headrace::cluster
