#include "dataplane/config/sha256.h"

#include <openssl/evp.h>

#include <array>
#include <stdexcept>

namespace paceline {

std::string sha256(std::string_view content) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  if (EVP_Digest(content.data(), content.size(), digest.data(), &size, EVP_sha256(), nullptr) !=
      1) {
    throw std::runtime_error("SHA-256 is not available in this OpenSSL");
  }
  constexpr std::string_view kHexDigits = "0123456789abcdef";
  std::string out;
  for (unsigned i = 0; i < size; ++i) {
    out += kHexDigits[digest[i] >> 4];
    out += kHexDigits[digest[i] & 15];
  }
  return out;
}

}  // namespace paceline
