# Language, warnings, code generation. Applies to every target of the tree.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)  # the verbs library and plug-ins link the static rooms
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

set(THREADS_PREFER_PTHREAD_FLAG ON)

find_program(PACELINE_CCACHE ccache)
if(PACELINE_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${PACELINE_CCACHE}")
  set(CMAKE_C_COMPILER_LAUNCHER "${PACELINE_CCACHE}")
  # Tests share a precompiled header (tests/CMakeLists.txt). ccache keeps nothing compiled with
  # one unless told that macros and __TIME__ around it do not matter; here they do not.
  if(NOT DEFINED ENV{CCACHE_SLOPPINESS})
    set(CMAKE_CXX_COMPILER_LAUNCHER
      "${CMAKE_COMMAND};-E;env;CCACHE_SLOPPINESS=pch_defines,time_macros;${PACELINE_CCACHE}")
  endif()
endif()

# Code writes #include "dataplane/base/units.h": one include root, the repository.
include_directories("${PROJECT_SOURCE_DIR}")

add_compile_options(-Wall -Wextra -Wpedantic -Wconversion)
if(PACELINE_WERROR)
  add_compile_options(-Werror)
endif()

# Results must be the same from every compiler and on every machine, so no contraction into fused
# multiply-adds. sqrt may compile to one instruction: nobody here reads errno after it.
add_compile_options(-ffp-contract=off -fno-math-errno)

# Position-independent code without this may not inline any function with external linkage, not even
# within its file: someone could replace it at load time. Nobody does.
add_compile_options(-fno-semantic-interposition)

# A baseline, never -march=native: binaries and results files travel between machines. x86-64-v2
# (SSE4.2, POPCNT; every server since 2009) is also the least that DPDK 22.11 accepts. Kernels that want more are compiled
# with a target attribute and dispatched at start.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  add_compile_options(-march=x86-64-v2 -mtune=generic)
endif()

# GCC's generic tuning clears structs of a hundred bytes with "rep stos", which takes tens of cycles
# to begin. Stores do.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  add_compile_options(-mmemset-strategy=vector_loop:256:noalign,libcall:-1:noalign
                      -mmemcpy-strategy=vector_loop:256:noalign,libcall:-1:noalign)
endif()

if(PACELINE_SANITIZE)
  # -O1 after -Og: sanitizer reports stay readable and the tests finish in useful time. Line tables are
  # all that a report needs.
  add_compile_options(-O1 -g1 -fno-omit-frame-pointer -fsanitize=${PACELINE_SANITIZE}
    -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${PACELINE_SANITIZE})
  # Clang 14 cannot put the mark of this check before the parts of a coroutine. For rooms that have them.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND PACELINE_SANITIZE MATCHES "undefined")
    set(PACELINE_COROUTINE_OPTIONS -fno-sanitize=function)
  endif()
endif()

if(PACELINE_COVERAGE)
  add_compile_options(--coverage)
  add_link_options(--coverage)
endif()

if(PACELINE_FUZZ AND NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  message(FATAL_ERROR "PACELINE_FUZZ needs Clang (libFuzzer); this is ${CMAKE_CXX_COMPILER_ID}")
endif()

# lld links in a tenth to a quarter of the time of GNU's linker, which links what is shipped and measured.
# Clang's is of the version that fits.
find_program(PACELINE_LLD ld.lld)
if(PACELINE_LLD AND (CMAKE_CXX_COMPILER_ID MATCHES "Clang" OR CMAKE_BUILD_TYPE STREQUAL "Debug"))
  add_link_options(-fuse-ld=lld)
endif()

if(PACELINE_LTO)
  include(CheckIPOSupported)
  check_ipo_supported(LANGUAGES CXX)
  set(CMAKE_INTERPROCEDURAL_OPTIMIZATION ON)
endif()

# Rooms that every packet passes through carry, in GCC's release build, both machine code and what
# link-time optimisation needs; the few executables whose speed matters link with it, all others (the
# tests) as ever. Functions then inline across rooms: docs/performance.md says what it gives.
if(NOT (CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_BUILD_TYPE STREQUAL "Release")
   OR PACELINE_LTO OR PACELINE_SANITIZE OR PACELINE_COVERAGE)
  set(PACELINE_HOT_LTO OFF)
endif()
if(PACELINE_HOT_LTO)
  # The linker's plug-in takes such objects up unless it is told not to.
  add_link_options("$<IF:$<BOOL:$<TARGET_PROPERTY:PACELINE_FAST>>,-flto=auto,-fno-lto>")
endif()
