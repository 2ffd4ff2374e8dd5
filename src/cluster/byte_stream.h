#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <span>
#include <string>

namespace headrace::cluster {

/// What became of an attempt to move bytes.
struct Progress {
  enum class Kind {
    kMoved,         ///< `bytes` of them, at least one
    kWaitReadable,  ///< try again when the socket is readable
    kWaitWritable,
    kEnded,   ///< the peer sends no more
    kFailed,  ///< for the reason in `why`; the stream is of no more use
  };
  Kind kind;
  size_t bytes = 0;
  std::string why = {};
};

/// The bytes of a connected socket that does not block, plain or by TLS. Does not own the socket. Threading: one thread
/// writes, one reads. Neither raises SIGPIPE.
class ByteStream {
 public:
  virtual ~ByteStream() = default;
  /// Takes from the front of `parts`, none of them empty; not necessarily all of the first. After kWait... the same
  /// parts must be given again.
  [[nodiscard]] virtual Progress write_some(std::span<const iovec> parts) = 0;
  [[nodiscard]] virtual Progress read_some(std::span<std::byte> into) = 0;
};

/// `fd`'s own bytes.
class PlainStream final : public ByteStream {
 public:
  explicit PlainStream(int fd) noexcept : fd_(fd) {}
  [[nodiscard]] Progress write_some(std::span<const iovec> parts) override;
  [[nodiscard]] Progress read_some(std::span<std::byte> into) override;

 private:
  int fd_;
};

}  // namespace headrace::cluster
