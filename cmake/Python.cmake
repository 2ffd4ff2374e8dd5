# The Python package: build/<preset>/python is a folder for PYTHONPATH; `pip install .` installs the same with the
# program (pyproject.toml). The modules are linked of the objects that the program is.
find_package(Python COMPONENTS Interpreter Development.Module REQUIRED)
set(PYBIND11_FINDPYTHON ON)
find_package(pybind11 2.10 REQUIRED)
get_property(rooms GLOBAL PROPERTY HR_ROOMS)

set(engine_rooms hr_base hr_tensor hr_step hr_quant hr_ops hr_backend hr_files hr_text hr_kv hr_arch hr_model hr_sample
  hr_sched hr_engine hr_cluster hr_api)
set(package ${CMAKE_BINARY_DIR}/python/headrace)

# hr_python_module(NAME SOURCE ROOM...)
function(hr_python_module name source)
  pybind11_add_module(${name} MODULE NO_EXTRAS ${source} ${CMAKE_SOURCE_DIR}/python/src/native.cc)
  hr_link_rooms(${name} ${ARGN})
  target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR})
  # Only what Python calls is seen from outside; the rest may be dropped.
  target_link_options(${name} PRIVATE -Wl,--exclude-libs,ALL -Wl,--gc-sections
    -Wl,--version-script=${CMAKE_SOURCE_DIR}/python/src/exports.map)
  set_target_properties(${name} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${package} LINK_DEPENDS
    ${CMAKE_SOURCE_DIR}/python/src/exports.map)
  install(TARGETS ${name} LIBRARY DESTINATION headrace COMPONENT python)
endfunction()

hr_python_module(_engine ${CMAKE_SOURCE_DIR}/python/src/engine.cc ${engine_rooms})
if(HR_GRPC)
  hr_python_module(_client ${CMAKE_SOURCE_DIR}/python/src/client.cc ${engine_rooms} hr_openai hr_rpc)
endif()

file(MAKE_DIRECTORY ${package})
file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/python/headrace/*.py ${CMAKE_SOURCE_DIR}/python/headrace/py.typed)
foreach(file ${sources})
  get_filename_component(name ${file} NAME)
  file(CREATE_LINK ${file} ${package}/${name} SYMBOLIC)
endforeach()
if(SKBUILD)
  install(PROGRAMS $<TARGET_FILE:headrace> DESTINATION ${SKBUILD_SCRIPTS_DIR} COMPONENT python)
endif()
