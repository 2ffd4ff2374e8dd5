# Files that the program carries inside itself: hr_embed(ROOM FOLDER) adds src/<FOLDER>/*.{html,js,css,svg} to a room
# as the table of server/page/page_files.h. Run as a script (cmake -P) it writes that table.
if(CMAKE_SCRIPT_MODE_FILE)
  set(text "#include \"server/page/page_files.h\"\n\nnamespace headrace::server {\nnamespace {\n\n")
  set(rows "")
  set(types_html "text/html; charset=utf-8")
  set(types_js "text/javascript; charset=utf-8")
  set(types_css "text/css; charset=utf-8")
  set(types_svg "image/svg+xml")
  set(number 0)
  foreach(file ${FILES})
    get_filename_component(name ${file} NAME)
    get_filename_component(type ${file} LAST_EXT)
    string(SUBSTRING ${type} 1 -1 type)
    file(READ ${file} bytes HEX)
    string(REGEX REPLACE "(..)" "\\\\x\\1" bytes "${bytes}")
    # Lines of 32 bytes; each ends its literal, so that a digit that follows is not taken for part of the code.
    string(REGEX REPLACE "((\\\\x..)(\\\\x..)?(\\\\x..)?(\\\\x..)?(\\\\x..)?(\\\\x..)?(\\\\x..)?(\\\\x..)?)" "    \"\\1\"\n" bytes "${bytes}")
    string(APPEND text "constexpr char kFile${number}[] =\n${bytes}    ;\n\n")
    string(APPEND rows "    {\"${name}\", \"${types_${type}}\", {kFile${number}, sizeof kFile${number} - 1}},\n")
    math(EXPR number "${number} + 1")
  endforeach()
  string(APPEND text "constexpr PageFile kFiles[] = {\n${rows}};\n\n}  // namespace\n\n"
    "std::span<const PageFile> page_files() noexcept { return kFiles; }\n\n}  // namespace headrace::server\n")
  file(WRITE ${OUTPUT} "${text}")
  return()
endif()

function(hr_embed room folder)
  set(dir ${CMAKE_CURRENT_SOURCE_DIR}/src/${folder})
  file(GLOB files CONFIGURE_DEPENDS ${dir}/*.html ${dir}/*.js ${dir}/*.css ${dir}/*.svg)
  set(output ${CMAKE_CURRENT_BINARY_DIR}/embedded/${room}_files.cc)
  set(script ${CMAKE_CURRENT_FUNCTION_LIST_FILE})
  add_custom_command(OUTPUT ${output}
    COMMAND ${CMAKE_COMMAND} "-DFILES=${files}" -DOUTPUT=${output} -P ${script}
    DEPENDS ${files} ${script} COMMENT "Embedding the files of src/${folder}" VERBATIM)
  target_sources(hr_${room} PRIVATE ${output})
endfunction()
