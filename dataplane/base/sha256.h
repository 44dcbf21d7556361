// SHA-256 (FIPS 180-4), for names of contents: of schedules that are registered, of plug-ins that
// are loaded. Small files, off every hot path; made for nothing else.
#pragma once

#include <string>
#include <string_view>

namespace paceline {

// 64 hexadecimal digits.
std::string sha256(std::string_view content);

}  // namespace paceline
