#include "control/daemon/api/server/tokens.h"

#include <openssl/crypto.h>
#include <openssl/sha.h>

#include <algorithm>
#include <utility>

#include "control/daemon/api/private_file.h"
#include "control/daemon/api/target.h"
#include "dataplane/base/text/printable.h"

namespace paceline::daemon {

namespace {

std::string_view next_word(std::string_view& line) {
  const std::size_t begin = std::min(line.find_first_not_of(" \t\r"), line.size());
  line.remove_prefix(begin);
  const std::size_t end = std::min(line.find_first_of(" \t\r"), line.size());
  const std::string_view word = line.substr(0, end);
  line.remove_prefix(end);
  return word;
}

// b64token of RFC 6750, section 2.1.
bool is_token_text(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           std::string_view("-._~+/=").find(c) != std::string_view::npos;
  });
}

}  // namespace

std::string Tokens::read_file(const std::string& path) {
  entries_.clear();
  std::string text;
  if (std::string wrong = read_private_file(path, text); !wrong.empty()) return wrong;
  std::string wrong = parse(text, path);
  OPENSSL_cleanse(text.data(), text.size());
  return wrong;
}

std::string Tokens::parse(std::string_view text, const std::string& file_name) {
  entries_.clear();
  std::vector<Entry> entries;
  std::size_t number = 0;
  while (!text.empty()) {
    ++number;
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    line = line.substr(0, line.find('#'));
    const std::string_view name = next_word(line);
    if (name.empty()) continue;
    const std::string_view right = next_word(line);
    const std::string_view token = next_word(line);
    const std::string at = file_name + ":" + std::to_string(number) + ": ";
    if (right != "read" && right != "write") {
      return at + "right " + in_quotes(right) + " of token " + in_quotes(name) +
             "; allowed: read, write (a line is NAME RIGHT TOKEN)";
    }
    // The token itself is not repeated: messages go to logs.
    if (token.size() < kLeastToken || !is_token_text(token)) {
      return at + "token " + in_quotes(name) + " has " + std::to_string(token.size()) +
             " characters; allowed: at least " + std::to_string(kLeastToken) +
             " of A-Z a-z 0-9 - . _ ~ + / =";
    }
    if (!next_word(line).empty()) return at + "text behind token " + in_quotes(name);
    const Digest digest = digest_of(token);
    for (const Entry& other : entries) {
      if (other.name == name || other.digest == digest) {
        return at + "token " + in_quotes(name) + " has the name or the text of an earlier one";
      }
    }
    entries.push_back({std::string(name), right == "write", digest});
  }
  if (entries.empty()) return file_name + ": no token in it; a line is NAME read|write TOKEN";
  entries_ = std::move(entries);
  return {};
}

Tokens::Digest Tokens::digest_of(std::string_view token) {
  Digest digest{};
  ::SHA256(reinterpret_cast<const unsigned char*>(token.data()), token.size(), digest.data());
  return digest;
}

std::optional<Caller> Tokens::caller_of(std::string_view token) const {
  const Digest digest = digest_of(token);
  const Entry* found = nullptr;
  for (const Entry& entry : entries_) {
    if (::CRYPTO_memcmp(entry.digest.data(), digest.data(), digest.size()) == 0) found = &entry;
  }
  if (found == nullptr) return std::nullopt;
  return Caller{"token " + found->name, found->may_write};
}

std::optional<Caller> Tokens::caller_by_header(std::string_view authorization) const {
  constexpr std::string_view kScheme = "bearer ";
  const std::string_view scheme = authorization.substr(0, kScheme.size());
  const bool bearer =
      std::equal(scheme.begin(), scheme.end(), kScheme.begin(), kScheme.end(),
                 [](char a, char b) { return (a >= 'A' && a <= 'Z' ? a - 'A' + 'a' : a) == b; });
  if (!bearer) return std::nullopt;
  authorization.remove_prefix(kScheme.size());
  const std::string_view token = next_word(authorization);
  if (!next_word(authorization).empty()) return std::nullopt;
  return caller_of(token);
}

}  // namespace paceline::daemon
