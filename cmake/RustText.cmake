# The Rust static library (tokenizer, chat templates, grammars), always built in release: sanitizer builds share it.
# HR_RUST_TARGET_DIR in the environment lets checkouts share cargo's work: the crates that it depends on are built once.
set(rust_target_dir "${CMAKE_SOURCE_DIR}/build/rust")
if(DEFINED ENV{HR_RUST_TARGET_DIR})
  set(rust_target_dir "$ENV{HR_RUST_TARGET_DIR}")
endif()
set(HR_RUST_TARGET_DIR "${rust_target_dir}" CACHE PATH "Where cargo keeps its build")
find_program(HR_CARGO cargo PATHS $ENV{CARGO_HOME}/bin $ENV{HOME}/.cargo/bin REQUIRED)
file(GLOB_RECURSE rust_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/rust/src/*.rs)
set(rust_lib ${HR_RUST_TARGET_DIR}/release/libheadrace_rust.a)
add_custom_command(OUTPUT ${rust_lib}
  COMMAND ${CMAKE_COMMAND} -E env CARGO_TARGET_DIR=${HR_RUST_TARGET_DIR} ${HR_CARGO} build --release --locked
  WORKING_DIRECTORY ${CMAKE_SOURCE_DIR}/rust
  DEPENDS ${rust_sources} ${CMAKE_SOURCE_DIR}/rust/Cargo.toml ${CMAKE_SOURCE_DIR}/rust/Cargo.lock
  USES_TERMINAL COMMENT "Building the Rust library")
add_custom_target(headrace_rust_build DEPENDS ${rust_lib})
add_library(headrace_rust STATIC IMPORTED GLOBAL)
set_target_properties(headrace_rust PROPERTIES IMPORTED_LOCATION ${rust_lib})
set_property(TARGET headrace_rust PROPERTY INTERFACE_LINK_LIBRARIES pthread dl m)
add_dependencies(headrace_rust headrace_rust_build)
