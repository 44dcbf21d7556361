// Whether a library can be loaded into a program before its own: found out before it is started,
// since the dynamic linker says nothing when it ignores LD_PRELOAD.
#pragma once

#include <string>

namespace paceline::tools {

// The file that a shell would run for `name`: the name itself if it has a slash, else the first
// executable file in the folders of `path` (PATH).
struct FoundProgram {
  std::string file;
  std::string error;  // not empty: no such program; exit_code is then 127 or 126, as a shell's
  int exit_code = 0;
};
FoundProgram find_program(const std::string& name, const std::string& path);

// Why no library can be loaded into `file`, or an empty text. For a script its interpreter is
// checked
// ("#!/usr/bin/env NAME" too).
std::string why_not_preloadable(const std::string& file, const std::string& path);

// Why a program of that name, though it can be loaded, would not see our NICs; empty: it would.
std::string why_blind(const std::string& file);

}  // namespace paceline::tools
