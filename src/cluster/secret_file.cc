#include "cluster/secret_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "base/ascii_text.h"
#include "base/error.h"
#include "cluster/tcp_socket.h"

namespace headrace::cluster {
namespace {

constexpr size_t kMaxFileBytes = 4096;

[[noreturn]] void refuse(const std::string& path, const std::string& what) {
  throw LoadError(path, what, ErrorCode::kInvalidArgument);
}

}  // namespace

std::string read_secret_file(const std::string& path) {
  const Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status {};
  if (fd.get() < 0 || ::fstat(fd.get(), &status) != 0)
    throw LoadError(path, cat("the cluster's shared secret cannot be read: ", system_error_text(errno)),
                    errno == ENOENT ? ErrorCode::kNotFound : ErrorCode::kInvalidArgument);
  if (!S_ISREG(status.st_mode)) refuse(path, "not a file; expected one that holds the cluster's shared secret");
  if ((status.st_mode & (S_IROTH | S_IWOTH)) != 0)
    refuse(path, "every user of this machine can read or write the cluster's shared secret; chmod o-rwx it");
  std::array<char, kMaxFileBytes + 1> text;
  size_t size = 0;
  while (size < text.size()) {
    const ssize_t n = ::read(fd.get(), text.data() + size, text.size() - size);
    if (n < 0) refuse(path, system_error_text(errno));
    if (n == 0) break;
    size += static_cast<size_t>(n);
  }
  if (size > kMaxFileBytes) refuse(path, cat("a shared secret has at most ", kMaxFileBytes, " bytes"));
  const std::string_view secret = ascii_trimmed({text.data(), size});
  if (secret.size() < kMinSecretBytes) {
    refuse(path, cat("shared secret of ", secret.size(), " bytes, expected at least ", kMinSecretBytes,
                     "; openssl rand -hex 32 makes one"));
  }
  return std::string(secret);
}

}  // namespace headrace::cluster
