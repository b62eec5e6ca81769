# Flags that every target of the project gets, and the static libraries it links.

set(CMAKE_CXX_FLAGS_RELEASE "-O2 -DNDEBUG")
# Lines for the sanitizers' reports, and no more: with -g, and -O1 for -Og, coroutines take the compiler twice as long. For a debugger: -DCMAKE_CXX_FLAGS_DEBUG=-ggdb
if(CMAKE_CXX_FLAGS_DEBUG STREQUAL "-g")  # CMake's default
  set(CMAKE_CXX_FLAGS_DEBUG "-g1")
endif()

find_program(SANDY_CCACHE ccache)
if(SANDY_CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${SANDY_CCACHE})
endif()

add_library(sandy_flags INTERFACE)
target_compile_options(sandy_flags INTERFACE -ffunction-sections -fdata-sections -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor
                                             -Wold-style-cast -Wno-missing-field-initializers)
if(SANDY_WERROR)
  target_compile_options(sandy_flags INTERFACE -Werror)
endif()
if(SANDY_SANITIZE)
  target_compile_options(sandy_flags INTERFACE -fsanitize=address,undefined -fno-sanitize-recover=all
                                               -fno-omit-frame-pointer -Og
                                               -Wno-maybe-uninitialized)  # false alarms in what sanitizers add (gcc(1)); without them it is on
  target_link_options(sandy_flags INTERFACE -fsanitize=address,undefined)
else()
  # g++ 12 reports -Wrestrict on plain string concatenation (its bug 105651).
  target_compile_options(sandy_flags INTERFACE -fstack-protector-strong -Wno-restrict)
  target_compile_definitions(sandy_flags INTERFACE $<$<CONFIG:Release>:_FORTIFY_SOURCE=2>)
  target_link_options(sandy_flags INTERFACE -Wl,-z,relro,-z,now)
endif()
target_compile_definitions(sandy_flags INTERFACE SANDY_VERSION="${PROJECT_VERSION}")

# sandy_library(NAME SOURCES... LINK targets...): the static library of one folder of src/.
function(sandy_library name)
  cmake_parse_arguments(arg "" "" "SOURCES;LINK" ${ARGN})
  add_library(sandy_${name} STATIC ${arg_SOURCES})
  target_include_directories(sandy_${name} PUBLIC ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(sandy_${name} PUBLIC sandy_flags ${arg_LINK})
endfunction()

# sandy_test(NAME SOURCES... LINK targets...): one GoogleTest program, registered with ctest.
function(sandy_test name)
  cmake_parse_arguments(arg "" "" "SOURCES;LINK" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE sandy_flags ${arg_LINK} GTest::gmock GTest::gtest_main)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  add_test(NAME ${name} COMMAND ${name})
endfunction()
