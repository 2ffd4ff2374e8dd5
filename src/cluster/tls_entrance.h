#pragma once

#include <poll.h>

#include <memory>
#include <optional>
#include <vector>

#include "cluster/tcp_link.h"
#include "cluster/tls_stream.h"

namespace headrace::cluster {

/// Connections whose TLS handshake is not done. All go on together, as whoever polls them calls step().
class TlsEntrance {
 public:
  /// Connections at once, and how long one may take.
  static constexpr size_t kMaxPending = 64;
  static constexpr double kSeconds = 5;

  explicit TlsEntrance(const TlsFiles& files) : context_(files, TlsContext::Side::kAccepts) {}

  /// Where all places are taken, it takes one of them (newcomer_place.h).
  void add(Descriptor fd, std::string peer);
  /// Appends what to poll, one entry for each connection.
  void append_to(std::vector<pollfd>& descriptors) const;
  /// When the next is too late; Deadline::max() where there is none.
  [[nodiscard]] Deadline next_deadline() const noexcept;
  /// Goes on with those of `polled` (as append_to wrote them) that have an event and drops those that failed or are too
  /// late; a link whose handshake is done, or null. Those after it go on at the next step.
  [[nodiscard]] std::unique_ptr<Link> step(std::span<const pollfd> polled);

 private:
  struct Pending {
    Descriptor fd;
    std::unique_ptr<TlsStream> stream;
    std::string peer;
    Deadline deadline;
    short events = POLLIN;
    bool refused = false;  ///< has been told so, and may read it until it ends the connection
  };
  enum class Next { kGoesOn, kDone, kGone };
  [[nodiscard]] static Next advance(Pending& pending);

  TlsContext context_;
  std::vector<Pending> pending_;  ///< the oldest first
};

}  // namespace headrace::cluster
