// Bearer tokens of clients on TCP (RFC 6750). The file has a line for each, "NAME read|write
// TOKEN", and may have empty lines and comments from '#'. Tokens are kept as their SHA-256 only.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "control/daemon/api/endpoint.h"

namespace paceline::daemon {

inline constexpr std::size_t kLeastToken = 32;  // characters

class Tokens {
 public:
  // Returns an error, with line, value and what is allowed, or an empty text. After an error no
  // token is kept.
  std::string read_file(const std::string& path);
  std::string parse(std::string_view text, const std::string& file_name);

  // The owner of the token. Takes equally long for all tokens of one length: it compares them all,
  // to the end.
  std::optional<Caller> caller_of(std::string_view token) const;
  // By the value of a header Authorization: "Bearer TOKEN".
  std::optional<Caller> caller_by_header(std::string_view authorization) const;

  std::size_t size() const { return entries_.size(); }

 private:
  using Digest = std::array<unsigned char, 32>;
  struct Entry {
    std::string name;
    bool may_write;
    Digest digest;
  };
  static Digest digest_of(std::string_view token);

  std::vector<Entry> entries_;
};

}  // namespace paceline::daemon
