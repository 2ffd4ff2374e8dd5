#include "base/isa.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "base/error.h"

namespace headrace {
namespace {

#if defined(__x86_64__)
bool amx_permitted() noexcept {
  constexpr long kArchReqXcompPerm = 0x1023;  // arch_prctl, Linux 5.16
  constexpr long kTileData = 18;
  static const bool granted = syscall(SYS_arch_prctl, kArchReqXcompPerm, kTileData) == 0;
  return granted;
}

bool has_avx2() noexcept {
  return __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0 &&
         __builtin_cpu_supports("f16c") != 0;
}

bool has_avx512() noexcept {
  return has_avx2() && __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
         __builtin_cpu_supports("avx512dq") != 0 && __builtin_cpu_supports("avx512vl") != 0 &&
         __builtin_cpu_supports("avx512vnni") != 0 && __builtin_cpu_supports("avx512bf16") != 0;
}

bool has_amx() noexcept {
  return has_avx512() && __builtin_cpu_supports("amx-tile") != 0 && __builtin_cpu_supports("amx-int8") != 0 &&
         __builtin_cpu_supports("amx-bf16") != 0 && amx_permitted();
}
#else
bool has_avx2() noexcept { return false; }
bool has_avx512() noexcept { return false; }
bool has_amx() noexcept { return false; }
#endif

std::string names_of_machine() {
  std::string out;
  for (const Isa isa : kAllIsas) {
    if (machine_has(isa)) out += cat(out.empty() ? "" : ", ", isa_name(isa));
  }
  return out;
}

}  // namespace

std::string_view isa_name(Isa isa) noexcept {
  constexpr std::array<std::string_view, 4> kNames{"ref", "avx2", "avx512", "amx"};
  return kNames[static_cast<size_t>(isa)];
}

std::optional<Isa> parse_isa(std::string_view name) noexcept {
  for (const Isa isa : kAllIsas) {
    if (isa_name(isa) == name) return isa;
  }
  return std::nullopt;
}

bool machine_has(Isa isa) noexcept {
  switch (isa) {
    case Isa::kRef:
      return true;
    case Isa::kAvx2:
      return has_avx2();
    case Isa::kAvx512:
      return has_avx512();
    case Isa::kAmx:
      return has_amx();
  }
  return false;
}

Isa best_isa() noexcept {
  Isa best = Isa::kRef;
  for (const Isa isa : kAllIsas) {
    if (machine_has(isa)) best = isa;
  }
  return best;
}

Isa choose_isa(std::string_view name) {
  const char* env = std::getenv("HEADRACE_ISA");
  const bool from_env = name.empty() && env != nullptr;
  if (from_env) name = env;
  if (name.empty()) return best_isa();
  const std::string_view where = from_env ? "HEADRACE_ISA" : "--isa";
  const std::optional<Isa> isa = parse_isa(name);
  if (!isa) {
    throw Error(ErrorCode::kInvalidArgument,
                cat(where, ": unknown instruction set '", printable(name), "', expected ref, avx2, avx512 or amx"));
  }
  if (!machine_has(*isa)) {
    throw Error(ErrorCode::kUnsupported, cat(where, ": this processor has no ", name, "; it has ", names_of_machine()));
  }
  return *isa;
}

std::string cpu_model_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    if (line.starts_with("model name")) {
      const size_t colon = line.find(": ");
      if (colon != std::string::npos) return line.substr(colon + 2);
    }
  }
  return "unknown processor";
}

}  // namespace headrace
