# hr_proto(NAME FILE...): the library headrace_<NAME>_proto of messages that proto/<FILE> describe, for includes like
# "headrace/v1/generation.pb.h". Services need no code of their own: calls are made and taken by name.
find_package(Protobuf REQUIRED)
find_package(gRPC CONFIG REQUIRED)

function(hr_proto name)
  set(out ${CMAKE_CURRENT_BINARY_DIR}/proto)
  set(sources "")
  foreach(file ${ARGN})
    string(REGEX REPLACE "\\.proto$" "" stem ${file})
    add_custom_command(OUTPUT ${out}/${stem}.pb.cc ${out}/${stem}.pb.h
      COMMAND ${CMAKE_COMMAND} -E make_directory ${out}
      COMMAND protobuf::protoc --proto_path=${CMAKE_SOURCE_DIR}/proto --cpp_out=${out} ${file}
      DEPENDS ${CMAKE_SOURCE_DIR}/proto/${file} COMMENT "Making C++ of ${file}" VERBATIM)
    list(APPEND sources ${out}/${stem}.pb.cc ${out}/${stem}.pb.h)
  endforeach()
  add_library(headrace_${name}_proto STATIC ${sources})
  target_include_directories(headrace_${name}_proto SYSTEM PUBLIC ${out})
  target_link_libraries(headrace_${name}_proto PUBLIC protobuf::libprotobuf)
  if(HR_SANITIZE)
    target_compile_options(headrace_${name}_proto PRIVATE -fsanitize=${HR_SANITIZE} -fno-omit-frame-pointer)
  endif()
endfunction()
