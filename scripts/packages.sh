# What the other scripts share: messages, system packages, Rust, how many jobs. Sourced by bash, with `root` set.

say() { printf '\n== %s\n' "$*"; }

# fail WHAT REMEDY
fail() {
  printf '\nerror: %s\n  remedy: %s\n' "$1" "$2" >&2
  exit 1
}

# step WHAT REMEDY COMMAND...: runs the command; a failure says what failed and what may help.
step() {
  local what=$1 remedy=$2
  shift 2
  say "$what"
  "$@" || fail "$what: failed" "$remedy"
}

system_id() { (. /etc/os-release 2>/dev/null && echo "${ID:-unknown}") || echo unknown; }

# package_table GROUP: the system packages of a group (build, test, format), one name a line.
package_table() {
  case "$(system_id)/$1" in
    debian/build)  # Debian 12
      echo g++ cmake ninja-build pkg-config ccache ca-certificates python3 python3-pip \
        libfmt-dev libspdlog-dev nlohmann-json3-dev libxxhash-dev libedit-dev libyaml-cpp-dev \
        libboost1.81-dev libssl-dev libcurl4-openssl-dev prometheus-cpp-dev \
        libgrpc++-dev libprotobuf-dev protobuf-compiler protobuf-compiler-grpc ;;
    debian/test) echo libgtest-dev libgmock-dev librapidcheck-dev git iproute2 chromium pybind11-dev python3-dev python3-venv ;;
    debian/rust) echo rustc-web cargo-web ;;
    debian/format) echo clang-format ;;
    ubuntu/build)  # Ubuntu 24.04: untried
      echo g++ cmake ninja-build pkg-config ccache ca-certificates python3 python3-pip \
        libfmt-dev libspdlog-dev nlohmann-json3-dev libxxhash-dev libedit-dev libyaml-cpp-dev \
        libboost-dev libssl-dev libcurl4-openssl-dev prometheus-cpp-dev \
        libgrpc++-dev libprotobuf-dev protobuf-compiler protobuf-compiler-grpc ;;
    ubuntu/test) echo libgtest-dev libgmock-dev librapidcheck-dev git iproute2 pybind11-dev python3-dev python3-venv ;;
    ubuntu/rust) echo rustup ;;
    ubuntu/format) echo clang-format ;;
  esac | tr ' ' '\n'
}

is_installed() { [ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]; }

as_root() {
  if [ "$(id -u)" = 0 ]; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    fail "only root can install packages, and there is no sudo" "as root: $*"
  fi
}

# --no-remove: apt gives up rather than remove what is on the machine.
apt_install() {
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends --no-remove \
    -o DPkg::Lock::Timeout=600 "$@"
}

# install_packages GROUP...: installs what is missing of the groups; does nothing where all is there.
install_packages() {
  local missing=() group name
  case "$(system_id)" in
    debian | ubuntu) ;;
    *)
      echo "no package table for this system ($(system_id)): taking for granted that what README.md lists is there"
      return
      ;;
  esac
  for group in "$@"; do
    for name in $(package_table "$group"); do
      is_installed "$name" || missing+=("$name")
    done
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  say "Installing system packages: ${missing[*]}"
  as_root apt-get update -q || fail "apt-get update: failed" "check the network and the package sources in /etc/apt"
  apt_install "${missing[@]}" ||
    fail "apt-get install ${missing[*]}: failed" "see apt's messages above; README.md lists the packages"
}

# The oldest compiler that rust/ accepts: its own rust-version, which is that of its crates too.
rust_version_needed() { sed -n 's/^rust-version *= *"\(.*\)"/\1/p' "$root/rust/Cargo.toml"; }

has_rust() {
  command -v cargo >/dev/null && command -v rustc >/dev/null || return 1
  local found
  found=$(rustc --version 2>/dev/null | cut -d' ' -f2) || return 1
  [ -n "$found" ] && printf '%s\n%s\n' "$(rust_version_needed)" "$found" | sort -V -C
}

# Takes the Rust that is there if it is new enough, ~/.cargo/bin included, else the system's.
install_rust() {
  has_rust && return
  PATH="${CARGO_HOME:-$HOME/.cargo}/bin:$PATH"
  has_rust && return
  local remedy
  remedy="install Rust $(rust_version_needed) or newer (rustc and cargo) in your own way and run this again"
  case "$(system_id)" in
    debian)
      # Debian's rustc is too old; rustc-web, made for its web browsers, is kept current.
      install_packages rust
      ;;
    ubuntu)
      install_packages rust
      rustup toolchain install --profile minimal stable && rustup default stable || fail "rustup: failed" "$remedy"
      ;;
    *) fail "no Rust that is new enough" "$remedy" ;;
  esac
  hash -r
  has_rust || fail "the Rust found is too old: $(rustc --version 2>&1 | head -n 1)" "$remedy"
}

# Compilers at once: the processors this process may use, and a gigabyte of free memory for each.
num_jobs() {
  local jobs quota period kib limit
  jobs=$(nproc)
  if read -r quota period 2>/dev/null </sys/fs/cgroup/cpu.max && [ "$quota" != max ]; then
    limit=$(((quota + period - 1) / period))
    [ "$limit" -lt "$jobs" ] && jobs=$limit
  fi
  kib=$(sed -n 's/^MemAvailable: *\([0-9]*\).*/\1/p' /proc/meminfo 2>/dev/null)
  if read -r limit 2>/dev/null </sys/fs/cgroup/memory.max && [ "$limit" != max ]; then
    [ $((limit / 1024)) -lt "${kib:-0}" ] && kib=$((limit / 1024))
  fi
  [ -n "$kib" ] && [ $((kib / 1048576)) -lt "$jobs" ] && jobs=$((kib / 1048576))
  [ "$jobs" -ge 1 ] || jobs=1
  echo "$jobs"
}

# configure PRESET ARG...: makes build/PRESET; quick where nothing changed.
configure() {
  local preset=$1
  shift
  # Other compilers warn of other things; on the system that we build on, a warning is an error.
  [ "$(system_id)" = debian ] || set -- -DHR_WERROR=OFF "$@"
  (cd "$root" && cmake --preset "$preset" --log-level=NOTICE "$@")
}

# build PRESET TARGET...
build() {
  local preset=$1
  shift
  (cd "$root" && cmake --build "build/$preset" --parallel "$(num_jobs)" --target "$@")
}
