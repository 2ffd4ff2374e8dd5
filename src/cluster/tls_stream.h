#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "cluster/byte_stream.h"
#include "cluster/link.h"

struct ssl_st;
struct ssl_ctx_st;

namespace headrace::cluster {

class TlsStream;

/// What all TLS 1.3 streams of one side share: its certificate and the authority that peers' must be signed by.
class TlsContext {
 public:
  enum class Side { kConnects, kAccepts };
  /// Throws Error(kInvalidArgument) naming the file or what is missing.
  TlsContext(const TlsFiles& files, Side side);
  /// Over a connected socket that does not block; shake_hands() comes first.
  [[nodiscard]] std::unique_ptr<TlsStream> stream(int fd) const;

 private:
  struct Free {
    void operator()(ssl_ctx_st* context) const noexcept;
  };
  Side side_;
  std::unique_ptr<ssl_ctx_st, Free> context_;
};

/// The bytes of a socket by TLS.
class TlsStream final : public ByteStream {
 public:
  TlsStream(ssl_ctx_st* context, TlsContext::Side side, int fd);
  ~TlsStream() override;
  /// kMoved once both sides are known to each other; kFailed says why they are not.
  [[nodiscard]] Progress shake_hands();
  [[nodiscard]] Progress write_some(std::span<const iovec> parts) override;
  [[nodiscard]] Progress read_some(std::span<std::byte> into) override;

  /// The socket as OpenSSL reads and writes it.
  struct Socket {
    int fd = -1;
    bool more_follows = false;  ///< of what is written now, so that small records share a segment
    bool ended = false;         ///< the peer sends no more
    int error_number = 0;       ///< of the last call that failed
  };

 private:
  struct Free {
    void operator()(ssl_st* ssl) const noexcept;
  };
  /// What became of a call that returned no success.
  [[nodiscard]] Progress progress_of(int returned);

  Socket socket_;
  std::mutex mutex_;  // both directions change the one state of the connection; never held while anybody waits
  std::unique_ptr<ssl_st, Free> ssl_;
};

}  // namespace headrace::cluster
