# Writes the registry of architectures from the HR_ARCH lines of src/arch/*.cc.
file(GLOB arch_files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/arch/*.cc)
set(arch_names "")
set(arch_claims "")
foreach(file ${arch_files})
  file(STRINGS ${file} lines REGEX "^HR_ARCH\\(")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  foreach(line ${lines})
    string(REGEX REPLACE "^HR_ARCH\\(([a-z0-9_]+).*" "\\1" name "${line}")
    list(APPEND arch_names ${name})
    string(REGEX MATCHALL "\"[A-Za-z0-9]+For[A-Za-z0-9]+\"" claims "${line}")
    foreach(claim ${claims})
      if(claim IN_LIST arch_claims)
        message(FATAL_ERROR "${file}: ${claim} is claimed by another architecture")
      endif()
      list(APPEND arch_claims ${claim})
    endforeach()
  endforeach()
endforeach()
set(declarations "")
set(entries "")
foreach(name ${arch_names})
  string(APPEND declarations "extern const ArchEntry kArch_${name};\n")
  string(APPEND entries "&kArch_${name}, ")
endforeach()
list(LENGTH arch_names arch_count)
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/generated/arch_list.cc @ONLY CONTENT [[
// Written by cmake/ArchRegistry.cmake from the HR_ARCH lines of src/arch/*.cc.
#include <array>

#include "arch/registry.h"

namespace headrace {
@declarations@
std::span<const ArchEntry* const> all_archs() noexcept {
  static const std::array<const ArchEntry*, @arch_count@> kAll{@entries@};
  return kAll;
}
}  // namespace headrace
]])
target_sources(hr_arch PRIVATE ${CMAKE_BINARY_DIR}/generated/arch_list.cc)
