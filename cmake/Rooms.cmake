# A room is a folder of src/: the build finds its files by suffix, so that adding a file edits no list.
#   x.cc                      the room's library hr_<room>
#   x_avx2.cc x_avx512.cc x_amx.cc   the same, compiled for that instruction set
#   x_test.cc                 the room's test program <room>_test
#   x_fuzz.cc                 a fuzz target <x>_fuzz (tests/fuzz_main.cc drives it)
#   x_bench.cc                a benchmark <x>_bench, built when asked for by name
set(HR_ISA_FLAGS_avx2 -mavx2 -mfma -mf16c)
# The last two: the intrinsics of g++ 12 begin from a vector that they leave undefined on purpose, and are warned about.
set(HR_ISA_FLAGS_avx512 ${HR_ISA_FLAGS_avx2} -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512vnni -mavx512bf16
  -mprefer-vector-width=512 -Wno-uninitialized -Wno-maybe-uninitialized)
set(HR_ISA_FLAGS_amx ${HR_ISA_FLAGS_avx512} -mamx-tile -mamx-int8 -mamx-bf16)
set_property(GLOBAL PROPERTY HR_ROOMS "")

function(hr_room name)
  # EXCLUDE: a pattern of files that this build leaves out.
  cmake_parse_arguments(ARG "" "EXCLUDE" "LINK" ${ARGN})
  get_property(above GLOBAL PROPERTY HR_ROOMS)
  set_property(GLOBAL APPEND PROPERTY HR_ROOMS hr_${name})
  set(dir ${CMAKE_CURRENT_SOURCE_DIR}/src/${name})
  file(GLOB_RECURSE all CONFIGURE_DEPENDS ${dir}/*.cc)
  if(ARG_EXCLUDE)
    list(FILTER all EXCLUDE REGEX "${ARG_EXCLUDE}")
  endif()
  set(sources ${all})
  list(FILTER sources EXCLUDE REGEX "_(test|fuzz|bench)\\.cc$")
  set(tests ${all})
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  set(fuzzers ${all})
  list(FILTER fuzzers INCLUDE REGEX "_fuzz\\.cc$")

  set(benches ${all})
  list(FILTER benches INCLUDE REGEX "_bench\\.cc$")

  if(sources)
    # An object library: files that only register themselves (arch/) must not be dropped by the linker.
    add_library(hr_${name} OBJECT ${sources})
    target_include_directories(hr_${name} PUBLIC ${CMAKE_CURRENT_SOURCE_DIR}/src ${CMAKE_CURRENT_SOURCE_DIR}/include)
    target_link_libraries(hr_${name} PUBLIC hr_flags ${ARG_LINK})
    foreach(room ${above})
      target_include_directories(hr_${name} PUBLIC $<TARGET_PROPERTY:${room},INTERFACE_INCLUDE_DIRECTORIES>)
    endforeach()
    foreach(isa avx2 avx512 amx)
      set(files ${sources})
      list(FILTER files INCLUDE REGEX "_${isa}\\.cc$")
      if(files)
        set_source_files_properties(${files} PROPERTIES COMPILE_OPTIONS "${HR_ISA_FLAGS_${isa}}")
      endif()
    endforeach()
  else()
    add_library(hr_${name} INTERFACE)
    target_link_libraries(hr_${name} INTERFACE ${ARG_LINK})
  endif()

  if(HR_TESTS AND tests)
    add_executable(${name}_test ${tests})
    hr_link_rooms(${name}_test ${above} hr_${name})
    target_link_libraries(${name}_test PRIVATE GTest::gtest_main GTest::gmock ${RAPIDCHECK_LIBRARY})
    target_compile_definitions(${name}_test PRIVATE HR_TEST_DATA="${CMAKE_SOURCE_DIR}/tests/data")
    add_test(NAME ${name}_test COMMAND ${name}_test)
  endif()
  if(HR_TESTS)
    set(seconds 1)
    if(HR_SANITIZE)
      set(seconds 5)  # they see what does not crash, too
    endif()
    foreach(file ${fuzzers})
      get_filename_component(fuzz ${file} NAME_WE)
      add_executable(${fuzz} ${file} ${CMAKE_SOURCE_DIR}/tests/fuzz_main.cc)
      hr_link_rooms(${fuzz} ${above} hr_${name})
      add_test(NAME ${fuzz} COMMAND ${fuzz} --seconds ${seconds} ${CMAKE_SOURCE_DIR}/tests/data/fuzz/${fuzz})
    endforeach()
  endif()
  foreach(file ${benches})
    get_filename_component(bench ${file} NAME_WE)
    add_executable(${bench} EXCLUDE_FROM_ALL ${file})
    hr_link_rooms(${bench} ${above} hr_${name})
  endforeach()
endfunction()

# Links the given rooms (object libraries) with what they need.
function(hr_link_rooms target)
  target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/include)
  target_link_libraries(${target} PRIVATE hr_flags ${ARGN})
endfunction()
