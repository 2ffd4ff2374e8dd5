# Compiler flags, sanitizers and the compiler cache.
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()

find_program(HR_CCACHE ccache)
if(HR_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${HR_CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${HR_CCACHE})
endif()

add_library(hr_flags INTERFACE)
# -ffp-contract=off: a fused multiply-add happens only where a recipe says so, or instruction sets would disagree.
target_compile_options(hr_flags INTERFACE -Wall -Wextra -Wconversion -Wshadow -Wno-psabi -ffp-contract=off
  -fno-math-errno -fno-trapping-math)
if(HR_WERROR)
  target_compile_options(hr_flags INTERFACE -Werror)
endif()
if(HR_SANITIZE)
  target_compile_options(hr_flags INTERFACE -fsanitize=${HR_SANITIZE} -fno-omit-frame-pointer
    -fno-sanitize-recover=all)
  target_link_options(hr_flags INTERFACE -fsanitize=${HR_SANITIZE})
  # g++ 12 reports false positives of these under the sanitizers' instrumentation.
  target_compile_options(hr_flags INTERFACE -Wno-maybe-uninitialized -Wno-stringop-overflow -Wno-array-bounds)
  if(HR_SANITIZE STREQUAL "thread")
    # It does not follow fences. Asio has some, beside locks that it does follow.
    target_compile_options(hr_flags INTERFACE -Wno-tsan)
  endif()
endif()
set(CMAKE_CXX_FLAGS_RELEASE "-O3 -g1 -DNDEBUG")
set(CMAKE_CXX_FLAGS_DEBUG "-O0 -g")
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O1 -g1")
