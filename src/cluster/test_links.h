#pragma once

#include <future>
#include <memory>
#include <string>
#include <utility>

#include "cluster/link.h"

namespace headrace::cluster {

/// For what must come: longer than any machine under load takes, shorter than a test's own limit.
[[nodiscard]] inline Deadline soon() { return after(30); }

/// Both ends of a connection over the loopback interface.
struct LinkPair {
  std::unique_ptr<Link> near, far;
};
[[nodiscard]] inline LinkPair connected_pair(const TlsFiles& tls = {}) {
  const std::unique_ptr<Listener> listener = listen_tcp("127.0.0.1:0", tls);
  auto near = std::async(std::launch::async, [&] {
    return make_tcp_network(tls)->connect(cat("127.0.0.1:", listener->port()), soon()).value();
  });
  LinkPair pair;
  pair.far = listener->accept(soon()).value();
  pair.near = near.get();
  return pair;
}

[[nodiscard]] inline std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}
[[nodiscard]] inline std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace headrace::cluster
