// SHA-256 (FIPS 180-4), to name contents: registered schedules, loaded plug-ins. Uses OpenSSL;
// throws std::runtime_error if OpenSSL lacks it.
#pragma once

#include <string>
#include <string_view>

namespace paceline {

// 64 hexadecimal digits.
std::string sha256(std::string_view content);

}  // namespace paceline
