// SHA-256 (FIPS 180-4), for names of contents: of schedules that are registered, of plug-ins that
// are loaded. By OpenSSL; throws std::runtime_error where that has none.
#pragma once

#include <string>
#include <string_view>

namespace paceline {

// 64 hexadecimal digits.
std::string sha256(std::string_view content);

}  // namespace paceline
