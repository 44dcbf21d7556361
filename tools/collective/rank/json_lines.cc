#include "tools/collective/rank/json_lines.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace paceline::rank {

JsonLines::~JsonLines() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

JsonLines::JsonLines(JsonLines&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), taken_in_(std::move(other.taken_in_)) {}

bool JsonLines::send(const nlohmann::json& message) {
  const std::string line =
      message.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  std::size_t sent = 0;
  while (sent < line.size()) {
    const ssize_t n = ::send(descriptor_, line.data() + sent, line.size() - sent, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    sent += static_cast<std::size_t>(n);
  }
  return true;
}

bool JsonLines::receive() {
  char some[4096];
  while (true) {
    const ssize_t n = ::recv(descriptor_, some, sizeof some, MSG_DONTWAIT);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno == EAGAIN || errno == EWOULDBLOCK;
    if (n == 0) return false;
    taken_in_.append(some, static_cast<std::size_t>(n));
    if (taken_in_.size() > kMostBytes && taken_in_.find('\n') > kMostBytes) return false;
  }
}

std::optional<nlohmann::json> JsonLines::next() {
  const std::size_t end = taken_in_.find('\n');
  if (end == std::string::npos) return std::nullopt;
  auto message = nlohmann::json::parse(
      taken_in_.begin(), taken_in_.begin() + static_cast<std::ptrdiff_t>(end), nullptr, false);
  taken_in_.erase(0, end + 1);
  return message;
}

}  // namespace paceline::rank
