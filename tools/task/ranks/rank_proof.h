// Proof that a rank may take part: MPI gave a token to all ranks of a command, and each side of a
// connection proves that it has the token without sending it. Later frames are neither encrypted
// nor signed.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace paceline::tools {

inline constexpr std::size_t kTokenBytes = 32;

enum class RankRole : unsigned char { first, other };

// Bytes from the kernel that nobody can guess. Throws std::runtime_error where there are none.
std::string secret_bytes(std::size_t count);

// What this role answers to the other side's nonce: 64 hexadecimal digits.
std::string rank_proof(std::string_view token, RankRole role, std::string_view challenge_nonce,
                       std::string_view hello_nonce);
// Takes a time that does not depend on where they differ.
bool same_proof(std::string_view a, std::string_view b);

}  // namespace paceline::tools
