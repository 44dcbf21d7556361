#include "tools/task/ranks/rank_proof.h"

#include <sys/random.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>

#include "dataplane/config/sha256.h"

namespace paceline::tools {

std::string secret_bytes(std::size_t count) {
  std::string bytes(count, '\0');
  if (::getrandom(bytes.data(), count, 0) != static_cast<ssize_t>(count)) {
    throw std::runtime_error(std::string("no random bytes from the kernel: ") +
                             std::strerror(errno));
  }
  return bytes;
}

// All parts have fixed lengths, and the first is the secret.
std::string rank_proof(std::string_view token, RankRole role, std::string_view challenge_nonce,
                       std::string_view hello_nonce) {
  std::string all(token);
  all += role == RankRole::first ? '0' : '1';
  all += challenge_nonce;
  all += hello_nonce;
  return sha256(all);
}

bool same_proof(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned differ = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    differ |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]);
  }
  return differ == 0;
}

}  // namespace paceline::tools
