# External packages, all from Debian 12 (tools/packages.txt). A room links only what it uses.

find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(tomlplusplus REQUIRED)
find_package(CLI11 REQUIRED)
find_package(nlohmann_json REQUIRED)
# TLS of the API; digests of plans and schedules.
find_package(OpenSSL 3.0 REQUIRED)
# 1.81, not the default 1.74, whose coroutines fail under Clang 14. Headers only.
find_package(Boost 1.81 REQUIRED)

set(PACELINE_HAVE_DPDK OFF)
if(PACELINE_EMULATOR_ONLY)
  return()
endif()

# Debian's library, not the header alone, which costs every source that logs seven seconds. The thread
# sanitizer must see what it does.
find_package(spdlog REQUIRED)
set(PACELINE_SPDLOG spdlog::spdlog)
if(PACELINE_SANITIZE MATCHES "thread")
  set(PACELINE_SPDLOG spdlog::spdlog_header_only)
endif()

# What of Asio and Beast is no template, compiled once.
add_library(paceline_asio STATIC cmake/asio.cc)
target_link_libraries(paceline_asio PUBLIC Boost::headers Threads::Threads)
target_compile_definitions(paceline_asio PUBLIC BOOST_ASIO_SEPARATE_COMPILATION)
add_library(paceline_beast STATIC cmake/beast.cc)
target_link_libraries(paceline_beast PUBLIC paceline_asio OpenSSL::SSL OpenSSL::Crypto)
target_compile_definitions(paceline_beast PUBLIC BOOST_BEAST_SEPARATE_COMPILATION)
# What pacelined needs, and nothing else: what must last, figures for Prometheus, systemd.
find_package(SQLite3 REQUIRED)
find_package(prometheus-cpp CONFIG REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(SYSTEMD REQUIRED IMPORTED_TARGET libsystemd)
# Writes the version scripts of the verbs library; runs checks and tests.
find_package(Python3 REQUIRED COMPONENTS Interpreter)

if(NOT PACELINE_DPDK STREQUAL "OFF")
  find_package(PkgConfig)
  if(PkgConfig_FOUND)
    pkg_check_modules(DPDK IMPORTED_TARGET libdpdk>=22.11)
  endif()
  if(DPDK_FOUND)
    set(PACELINE_HAVE_DPDK ON)
  elseif(PACELINE_DPDK STREQUAL "ON")
    message(FATAL_ERROR "PACELINE_DPDK=ON, but pkg-config finds no libdpdk >= 22.11 (Debian: libdpdk-dev)")
  endif()
endif()

if(PACELINE_TESTS)
  find_package(Catch2 2 REQUIRED)
  if(PACELINE_BENCH)
    find_package(benchmark REQUIRED)
  endif()
endif()
