// How a fuzzer ends when a promise is broken.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>

namespace paceline::fuzz {

[[noreturn]] inline void wrong(const std::string& what) {
  std::fprintf(stderr, "fuzz_engine: %s\n", what.c_str());
  std::abort();
}
inline void promise(bool holds, const char* what) {
  if (!holds) wrong(what);
}

}  // namespace paceline::fuzz
