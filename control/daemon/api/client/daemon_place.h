// Where a daemon answers: its Unix socket, or an address for TCP.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace paceline::daemon {

struct DaemonPlace {
  enum class Kind : std::uint8_t { local, plain, tls };
  Kind kind = Kind::local;
  std::string url;   // as it was given
  std::string path;  // of a Unix socket
  std::string host;  // name or address
  std::uint16_t port = 0;
  std::string token{};  // for the header Authorization; empty: none
  std::string ca{};     // file in PEM; empty: what the system trusts
};

// "unix:/run/paceline/pacelined.sock", "https://HOST:PORT", "http://HOST:PORT" (a tunnel's end).
// Returns what is allowed if the text is none of these, else an empty text.
std::string read_place(std::string_view url, DaemonPlace& out);

}  // namespace paceline::daemon
