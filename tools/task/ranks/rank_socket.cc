#include "tools/task/ranks/rank_socket.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <utility>

namespace paceline::tools {

namespace {

// A machine that lost its power or its network is noticed after 40 s. A stopped process is not: its
// kernel still answers.
constexpr int kIdleSeconds = 20;
constexpr int kProbeSeconds = 5;
constexpr int kProbes = 4;

void set_number(int socket, int level, int name, int value) {
  ::setsockopt(socket, level, name, &value, sizeof value);  // refused: it works without, too
}

bool would_wait() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

}  // namespace

RankSocket::RankSocket(attach::Descriptor socket, std::size_t most)
    : socket_(std::move(socket)), frames_(most) {
  const int fd = socket_.get();
  ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
  set_number(fd, IPPROTO_TCP, TCP_NODELAY, 1);
  set_number(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_number(fd, IPPROTO_TCP, TCP_KEEPIDLE, kIdleSeconds);
  set_number(fd, IPPROTO_TCP, TCP_KEEPINTVL, kProbeSeconds);
  set_number(fd, IPPROTO_TCP, TCP_KEEPCNT, kProbes);
}

bool RankSocket::send(std::string_view frames, SocketCost& cost) {
  if (!has_unsent()) {
    unsent_.clear();
    sent_ = 0;
  }
  unsent_.append(frames);
  return flush(cost) && unsent_.size() - sent_ <= kMostUnsent;
}

bool RankSocket::flush(SocketCost& cost) {
  while (has_unsent()) {
    const ssize_t done =
        ::send(socket_.get(), unsent_.data() + sent_, unsent_.size() - sent_, MSG_NOSIGNAL);
    ++cost.calls;
    if (done < 0) return would_wait();
    sent_ += static_cast<std::size_t>(done);
    cost.bytes += static_cast<std::uint64_t>(done);
  }
  return true;
}

bool RankSocket::receive(SocketCost& cost) {
  std::array<char, 1 << 16> buffer;
  const ssize_t got = ::recv(socket_.get(), buffer.data(), buffer.size(), 0);
  ++cost.calls;
  if (got == 0) return false;
  if (got < 0) return would_wait();
  cost.bytes += static_cast<std::uint64_t>(got);
  frames_.append({buffer.data(), static_cast<std::size_t>(got)});
  return true;
}

}  // namespace paceline::tools
