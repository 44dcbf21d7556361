# One line per room and per test folder:
#
#   paceline_library(<name> [HEADER_ONLY] [HOT | COLD] [DEPS <room or target>...]
#                    [PRIVATE <target>...] [INCLUDE <regex>] [EXCLUDE <regex>] [UNIT <sources>]
#                    [PRECOMPILE <header>... | <room>])
#       paceline_<name> from every .cc of the folder and of its sub-folders, except those that have a
#       CMakeLists.txt of their own. A room without .cc is an INTERFACE library.
#       HOT: every packet passes through it (PacelineCompiler.cmake, PACELINE_HOT_LTO). COLD: runs
#       before or after the traffic, and is optimised little: -O1 in release builds, else not at all. The templates of JSON and command-line headers take the optimiser most of a build.
#   paceline_fast_executable(<target>...)   link-time optimisation of the hot rooms in it
#   paceline_test(<name> [DEPS ...] [LABELS ...] [FIRST <source or room>...])
#       test_<name> from every .cc of the folder, registered with ctest as "<name>", "unit/<name>" in
#       tests/unit; cases with the Catch tags [slow], [threads] and [nightly] as "<name>/slow" and so on,
#       with labels of that name; those with [may_skip] one by one (cmake/PacelineDiscover.cmake). A folder without .cc is skipped.
#       FIRST: where the test's time goes, for builds that do not optimise tests (_paceline_link_first).
#   paceline_benchmarks([DEPS ...])   every .cc of the folder is one Google Benchmark executable
#   paceline_fuzzers([DEPS ...])      every .cc of the folder is one libFuzzer executable
#
# With PACELINE_AS_ONE the sources of a room, or of a folder of tests, are compiled about ten at a time, or UNIT where
# ten need more than 800 MB: their headers are read once. The names in their anonymous namespaces must then differ within the room. Not so
# hot rooms under link-time optimisation: what is measured is what is shipped. PRECOMPILE: headers that nearly
# every unit of the room reads, or the room that has them.
#
# DEPS takes rooms ("base" means paceline_base) and ordinary targets ("fmt::fmt") alike. Sources are
# found by globbing, so a new file needs no edit of a list.

set(PACELINE_TEST_TIMEOUT 120 CACHE STRING "Seconds after which ctest ends a test case")

function(_paceline_resolve out)
  set(result)
  foreach(dep IN LISTS ARGN)
    if(dep MATCHES "::" OR TARGET ${dep})
      list(APPEND result ${dep})
    else()
      list(APPEND result paceline_${dep})
    endif()
  endforeach()
  set(${out} ${result} PARENT_SCOPE)
endfunction()

function(_paceline_as_one target size)
  if(PACELINE_AS_ONE)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${size})
  endif()
endfunction()

# The .cc files of the folder and of the sub-folders that have no CMakeLists.txt.
function(_paceline_room_sources out)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/*.cc")
  file(GLOB_RECURSE others "${CMAKE_CURRENT_SOURCE_DIR}/CMakeLists.txt")
  list(REMOVE_ITEM others "${CMAKE_CURRENT_SOURCE_DIR}/CMakeLists.txt")
  foreach(other IN LISTS others)
    cmake_path(GET other PARENT_PATH folder)
    foreach(source IN LISTS sources)
      cmake_path(IS_PREFIX folder "${source}" belongs_to_other)
      if(belongs_to_other)
        list(REMOVE_ITEM sources "${source}")
      endif()
    endforeach()
  endforeach()
  set(${out} "${sources}" PARENT_SCOPE)
endfunction()

function(paceline_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "HEADER_ONLY;HOT;COLD" "INCLUDE;EXCLUDE;UNIT" "DEPS;PRIVATE;PRECOMPILE")
  _paceline_resolve(deps ${arg_DEPS})
  _paceline_resolve(private_deps ${arg_PRIVATE})
  set(sources)
  if(NOT arg_HEADER_ONLY)
    _paceline_room_sources(sources)
    if(arg_INCLUDE)
      list(FILTER sources INCLUDE REGEX "${arg_INCLUDE}")
    endif()
    if(arg_EXCLUDE)
      list(FILTER sources EXCLUDE REGEX "${arg_EXCLUDE}")
    endif()
  endif()
  if(sources)
    add_library(paceline_${name} STATIC ${sources})
    target_link_libraries(paceline_${name} PUBLIC ${deps} PRIVATE ${private_deps})
    if(arg_HOT AND PACELINE_HOT_LTO)
      target_compile_options(paceline_${name} PRIVATE -flto -ffat-lto-objects)
    else()
      # Units of like sizes, so that none is left with a few for which every header is read again.
      if(NOT arg_UNIT)
        set(arg_UNIT 10)
      endif()
      list(LENGTH sources count)
      math(EXPR units "(${count} + ${arg_UNIT} / 2) / ${arg_UNIT}")
      if(units GREATER 1)
        math(EXPR count "(${count} + ${units} - 1) / ${units}")
      endif()
      _paceline_as_one(paceline_${name} ${count})
    endif()
    if(arg_COLD)
      paceline_optimise_little(paceline_${name})
    endif()
    if(arg_PRECOMPILE AND PACELINE_AS_ONE)
      if(TARGET "paceline_${arg_PRECOMPILE}")
        target_precompile_headers(paceline_${name} REUSE_FROM paceline_${arg_PRECOMPILE})
      else()
        target_precompile_headers(paceline_${name} PRIVATE ${arg_PRECOMPILE})
      endif()
      paceline_precompiled_options(paceline_${name})
    endif()
    if(PACELINE_FUZZ)
      target_compile_options(paceline_${name} PRIVATE -fsanitize=fuzzer-no-link)
    endif()
  else()
    add_library(paceline_${name} INTERFACE)
    target_link_libraries(paceline_${name} INTERFACE ${deps})
  endif()
endfunction()

function(paceline_fast_executable)
  set_target_properties(${ARGN} PROPERTIES PACELINE_FAST ON)
endfunction()

# For what is not worth an optimiser's time: COLD rooms, and tests. What a test exercises is optimised in
# its room; optimising Catch's assertions costs most of the build time of a check.
if(PACELINE_SANITIZE)
  set(PACELINE_LITTLE_OPTIONS -O0)
else()
  set(PACELINE_LITTLE_OPTIONS $<$<CONFIG:Release>:-O1> $<$<CONFIG:Debug>:-O0>)
endif()
function(paceline_optimise_little target)
  target_compile_options(${target} PRIVATE ${PACELINE_LITTLE_OPTIONS})
endfunction()

# Options of whoever uses a precompiled header. From one, GCC 12 takes code inlined from the standard
# library for ours, and warns of the bounds of std::string. -fpch-preprocess, -fno-pch-timestamp are for ccache.
function(paceline_precompiled_options target)
  target_compile_options(${target} PRIVATE
    "$<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess;-Wno-array-bounds;-Wno-stringop-overflow;-Wno-stringop-overread;-Wno-restrict>"
    "$<$<CXX_COMPILER_ID:Clang>:SHELL:-Xclang -fno-pch-timestamp>")
endfunction()

# Options of whoever shares Catch's precompiled header.
function(paceline_precompiled_catch target)
  if(NOT PACELINE_TEST_LINES)
    target_compile_options(${target} PRIVATE -g0)
  endif()
  paceline_precompiled_options(${target})
endfunction()

# How an executable with Catch's cases is compiled and linked.
function(paceline_catch_executable target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "DEPS")
  _paceline_resolve(deps ${arg_DEPS})
  target_link_libraries(${target} PRIVATE ${deps} paceline_catch_main)
  target_compile_definitions(${target} PRIVATE PACELINE_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  paceline_optimise_little(${target})
  paceline_precompiled_catch(${target})
  _paceline_as_one(${target} 12)
  target_precompile_headers(${target} REUSE_FROM paceline_catch_header)
  # Not for what is shipped or measured.
  if(PACELINE_LLD AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_link_options(${target} PRIVATE -fuse-ld=lld)
  endif()
endfunction()

# Rooms that a test executable links first, and its sources that are optimised as rooms are and come before
# them. The linker takes the first copy of an inline function; a test's own, not optimised, would else
# replace that of the rooms: tests under sanitizers then take two to five times as long.
function(_paceline_link_first target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;DEPS;ROOMS")
  _paceline_resolve(libraries ${arg_ROOMS})
  if(arg_SOURCES)
    add_library(${target}_first STATIC ${arg_SOURCES})
    _paceline_resolve(deps ${arg_DEPS})
    target_link_libraries(${target}_first PRIVATE ${deps} Catch2::Catch2)
    target_compile_definitions(${target}_first PRIVATE PACELINE_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
    _paceline_as_one(${target}_first 12)
    target_link_libraries(${target} PRIVATE ${target}_first)
    list(PREPEND libraries ${target}_first)
  endif()
  list(TRANSFORM libraries REPLACE "(.+)" "$<TARGET_FILE:\\1>")
  list(JOIN libraries "," libraries)
  target_link_options(${target} BEFORE PRIVATE "LINKER:--whole-archive,${libraries},--no-whole-archive")
endfunction()

function(paceline_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "DEPS;LABELS;FIRST")
  file(GLOB sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/*.cc")
  if(NOT sources)
    return()
  endif()
  set(tagged)
  set(others)
  foreach(source IN LISTS sources)
    file(STRINGS "${source}" cases REGEX "TEST_CASE")
    file(STRINGS "${source}" lines REGEX "\\[threads\\]")
    if(lines)
      list(APPEND tagged "${source}")
    elseif(cases)
      list(APPEND others "${source}")
    endif()
  endforeach()
  # The thread sanitizer runs no others: their sources need no compiling.
  if(tagged AND others AND PACELINE_SANITIZE MATCHES "thread" AND NOT "threads" IN_LIST arg_LABELS)
    list(REMOVE_ITEM sources ${others})
  endif()
  set(rooms)
  set(first)
  if(arg_FIRST AND CMAKE_BUILD_TYPE STREQUAL "Debug")
    set(rooms ${arg_FIRST})
    list(FILTER rooms EXCLUDE REGEX "\\.cc$")
    foreach(source IN LISTS arg_FIRST)
      if("${CMAKE_CURRENT_SOURCE_DIR}/${source}" IN_LIST sources)
        list(APPEND first "${CMAKE_CURRENT_SOURCE_DIR}/${source}")
      endif()
    endforeach()
    if(first)
      list(REMOVE_ITEM sources ${first})
    endif()
  endif()
  add_executable(test_${name} ${sources})
  paceline_catch_executable(test_${name} DEPS ${arg_DEPS})
  if(rooms)
    _paceline_link_first(test_${name} SOURCES ${first} DEPS ${arg_DEPS} ROOMS ${rooms})
  endif()

  set_property(GLOBAL APPEND PROPERTY PACELINE_TEST_EXECUTABLES test_${name})
  if(tagged OR "threads" IN_LIST arg_LABELS)
    add_dependencies(threads_tests test_${name})
  endif()

  set(entry "${name}")
  if(CMAKE_CURRENT_SOURCE_DIR MATCHES "/tests/unit/")
    set(entry "unit/${name}")
  endif()
  # Which cases there are is asked of the executable once it is built; ctest reads the answer.
  set(cases "${CMAKE_CURRENT_BINARY_DIR}/test_${name}_cases.cmake")
  string(REPLACE ";" "," labels "${arg_LABELS}")
  # Cases about fidelity alone, and about memory (a sanitizer keeps what is freed): the release builds run
  # them.
  set(left_out "")
  if(PACELINE_SANITIZE)
    set(left_out "~[fidelity]~[reference]~[peak-memory]")
  endif()
  add_custom_command(TARGET test_${name} POST_BUILD VERBATIM BYPRODUCTS "${cases}"
    COMMAND "${CMAKE_COMMAND}" "-DEXECUTABLE=$<TARGET_FILE:test_${name}>" "-DNAME=${entry}"
            "-DRUNNER=${Python3_EXECUTABLE},-B,${PROJECT_SOURCE_DIR}/tests/support/run_cases.py,--case-seconds,${PACELINE_TEST_TIMEOUT}"
            "-DLEFT_OUT=${left_out}" "-DLABELS=${labels}" "-DTIMEOUT=${PACELINE_TEST_TIMEOUT}" "-DOUTPUT=${cases}"
            -P "${PROJECT_SOURCE_DIR}/cmake/PacelineDiscover.cmake")
  set(include_file "${CMAKE_CURRENT_BINARY_DIR}/test_${name}_include.cmake")
  file(WRITE "${include_file}"
    "if(EXISTS [==[${cases}]==])\n  include([==[${cases}]==])\n"
    "else()\n  add_test(${entry}/NOT_BUILT ${entry}/NOT_BUILT)\nendif()\n")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES "${include_file}")
endfunction()

function(paceline_benchmarks)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "" "DEPS")
  _paceline_resolve(deps ${arg_DEPS})
  file(GLOB sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/*.cc")
  foreach(source IN LISTS sources)
    cmake_path(GET source STEM stem)
    string(REGEX REPLACE "^bench_" "" stem ${stem})
    add_executable(bench_${stem} ${source})
    target_link_libraries(bench_${stem} PRIVATE ${deps} benchmark::benchmark benchmark::benchmark_main)
    target_compile_definitions(bench_${stem} PRIVATE PACELINE_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  endforeach()
endfunction()

function(paceline_fuzzers)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "" "DEPS")
  _paceline_resolve(deps ${arg_DEPS})
  file(GLOB sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/*.cc")
  foreach(source IN LISTS sources)
    cmake_path(GET source STEM stem)
    string(REGEX REPLACE "^fuzz_" "" stem ${stem})
    add_executable(fuzz_${stem} ${source})
    target_link_libraries(fuzz_${stem} PRIVATE ${deps})
    target_compile_options(fuzz_${stem} PRIVATE -fsanitize=fuzzer-no-link)
    target_link_options(fuzz_${stem} PRIVATE -fsanitize=fuzzer)
    set_property(GLOBAL APPEND PROPERTY PACELINE_FUZZERS fuzz_${stem})
  endforeach()
endfunction()
