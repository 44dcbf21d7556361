// The TCP side channels over which RDMA test programs tell each other about their queue pairs:
// ibv_rc_pingpong of rdma-core, and the parts of it that others have taken over. Never blocks for
// long: while there is nothing to read, `turn` goes on.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "tests/interop/peer/backend.h"

namespace paceline::interop {

// What ibv_rc_pingpong says of one end: "LID:QPN:PSN:GID", in hexadecimal digits, and a zero byte.
inline constexpr std::size_t kPingpongBytes = 52;
std::string pingpong_words(const Remote& end);
// Throws std::runtime_error for anything else.
Remote remote_from_pingpong(std::string_view words);

class SideChannel {
 public:
  using Turn = std::function<void(int fd)>;

  // To a listening program, which may still be starting.
  static SideChannel to(const std::string& ip, std::uint16_t port, Turn turn);
  // Waits for one to come.
  static SideChannel from(std::uint16_t port, Turn turn);
  SideChannel(SideChannel&& other) noexcept;
  SideChannel& operator=(SideChannel&&) = delete;
  ~SideChannel();

  // All of it, or std::runtime_error: the other end is gone, or silent for ten seconds.
  void write(std::string_view bytes);
  std::string read(std::size_t bytes);

 private:
  SideChannel(int socket, Turn turn) : socket_(socket), turn_(std::move(turn)) {}

  int socket_;
  Turn turn_;
};

}  // namespace paceline::interop
