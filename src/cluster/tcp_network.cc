#include <optional>

#include "cluster/tcp_link.h"
#include "cluster/tls_stream.h"

namespace headrace::cluster {
namespace {

/// Lets both sides get to know each other, or says why not.
Result<std::monostate> shake_hands(TlsStream& stream, int fd, const std::string& address, Deadline deadline) {
  while (true) {
    const Progress progress = stream.shake_hands();
    switch (progress.kind) {
      case Progress::Kind::kMoved:
        return std::monostate{};
      case Progress::Kind::kEnded:
        return Error(ErrorCode::kUnavailable, cat(address, ": ended the connection before TLS was agreed on"));
      case Progress::Kind::kFailed:
        return Error(ErrorCode::kUnavailable, cat(address, ": ", progress.why));
      case Progress::Kind::kWaitReadable:
      case Progress::Kind::kWaitWritable:
        if (!wait_for(fd, progress.kind == Progress::Kind::kWaitReadable ? Wait::kReadable : Wait::kWritable, deadline))
          return Error(ErrorCode::kTimeout, cat(address, ": no TLS in time"));
    }
  }
}

class TcpNetwork final : public Network {
 public:
  explicit TcpNetwork(const TlsFiles& tls) {
    if (tls.any()) tls_.emplace(tls, TlsContext::Side::kConnects);
  }

  [[nodiscard]] Result<std::unique_ptr<Link>> connect(const std::string& address, Deadline deadline) override {
    Result<Descriptor> connected = connect_tcp(address, deadline);
    if (!connected) return connected.error();
    Descriptor fd = std::move(connected).value();
    std::unique_ptr<ByteStream> stream;
    if (tls_) {
      auto secured = tls_->stream(fd.get());
      if (const auto agreed = shake_hands(*secured, fd.get(), address, deadline); !agreed) return agreed.error();
      stream = std::move(secured);
    } else {
      stream = std::make_unique<PlainStream>(fd.get());
    }
    return std::unique_ptr<Link>(new TcpLink(std::move(fd), std::move(stream), address));
  }

 private:
  std::optional<TlsContext> tls_;
};

}  // namespace

std::unique_ptr<Network> make_tcp_network(const TlsFiles& tls) { return std::make_unique<TcpNetwork>(tls); }

}  // namespace headrace::cluster
