#include "cluster/tcp_link.h"

namespace headrace::cluster {
namespace {

class TcpNetwork final : public Network {
 public:
  [[nodiscard]] Result<std::unique_ptr<Link>> connect(const std::string& address, Deadline deadline) override {
    Result<Descriptor> fd = connect_tcp(address, deadline);
    if (!fd) return fd.error();
    auto stream = std::make_unique<PlainStream>(fd.value().get());
    return std::unique_ptr<Link>(new TcpLink(std::move(fd).value(), std::move(stream), address));
  }
};

}  // namespace

std::unique_ptr<Network> make_tcp_network(const TlsFiles& tls) {
  if (tls.any()) throw Error(ErrorCode::kUnsupported, "TLS between machines is not supported yet");
  return std::make_unique<TcpNetwork>();
}

}  // namespace headrace::cluster
