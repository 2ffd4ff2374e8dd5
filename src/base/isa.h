#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace headrace {

/// Compute classes, each including those before it. kAvx2: AVX2, FMA, F16C. kAvx512: F, BW, DQ, VL, VNNI, BF16.
/// kAmx: tiles with int8 and bf16, permitted by the kernel.
enum class Isa : uint8_t { kRef, kAvx2, kAvx512, kAmx };
inline constexpr std::array kAllIsas{Isa::kRef, Isa::kAvx2, Isa::kAvx512, Isa::kAmx};

[[nodiscard]] std::string_view isa_name(Isa isa) noexcept;  ///< "ref", "avx2", "avx512", "amx"
[[nodiscard]] std::optional<Isa> parse_isa(std::string_view name) noexcept;

/// Whether this processor and operating system can run `isa`. Asks the kernel for the AMX permission once.
[[nodiscard]] bool machine_has(Isa isa) noexcept;
/// The highest class that the machine has.
[[nodiscard]] Isa best_isa() noexcept;
/// The class to use: `name` if not empty, else HEADRACE_ISA if set, else the best. Throws Error for an unknown name or
/// one that the machine lacks, naming those that it has.
[[nodiscard]] Isa choose_isa(std::string_view name);
/// The processor's brand string, as the system reports it.
[[nodiscard]] std::string cpu_model_name();

}  // namespace headrace
