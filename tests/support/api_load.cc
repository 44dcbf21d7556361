#include "tests/support/api_load.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <string_view>

namespace paceline::test {

namespace {

using LoadClock = std::chrono::steady_clock;

struct Due {
  LoadClock::time_point at;
  std::size_t target;
};

class LoadClient {
 public:
  LoadClient() = default;
  LoadClient(const LoadClient&) = delete;
  LoadClient& operator=(const LoadClient&) = delete;
  ~LoadClient() { close(); }

  std::deque<Due> due;
  int fd() const { return fd_; }
  bool waits() const { return waiting_; }

  bool connect(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof(address.sun_path)) return false;
    std::copy(path.begin(), path.end(), address.sun_path);
    close();
    fd_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return fd_ >= 0 &&
           ::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
  }

  // Requests are far smaller than the socket's buffer, which is empty: sent whole or not at all.
  bool send_first(const LoadPlan& plan) {
    const std::string text =
        "GET " + plan.targets[due.front().target] + " HTTP/1.1\r\nHost: localhost\r\n\r\n";
    waiting_ =
        ::send(fd_, text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
    return waiting_;
  }

  // False: the connection is over. A whole reply is counted.
  bool receive(LoadResult& result) {
    char piece[65536];
    const ssize_t got = ::recv(fd_, piece, sizeof(piece), MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return true;
    if (got <= 0) return false;
    in_.append(piece, static_cast<std::size_t>(got));
    const std::size_t head = in_.find("\r\n\r\n");
    if (head == std::string::npos) return true;
    static constexpr std::string_view kLength = "Content-Length: ";
    const std::size_t at = in_.find(kLength);
    if (at > head) return false;
    const std::size_t length = std::strtoul(in_.c_str() + at + kLength.size(), nullptr, 10);
    if (in_.size() < head + 4 + length) return true;
    ++result.answered;
    ++result.statuses[static_cast<unsigned>(std::strtoul(in_.c_str() + 9, nullptr, 10))];
    const auto late = LoadClock::now() - due.front().at;
    result.nanoseconds.record(static_cast<std::uint64_t>(
        std::chrono::duration_cast<std::chrono::nanoseconds>(late).count()));
    due.pop_front();
    in_.clear();
    waiting_ = false;
    return true;
  }

 private:
  void close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
    in_.clear();
    waiting_ = false;
  }

  int fd_ = -1;
  bool waiting_ = false;
  std::string in_;
};

}  // namespace

std::uint64_t LoadResult::failed() const {
  std::uint64_t count = 0;
  for (const auto& [status, times] : statuses) count += status >= 500 ? times : 0;
  return count;
}

LoadResult run_load(const LoadPlan& plan) {
  LoadResult result;
  std::vector<LoadClient> clients(plan.clients);
  for (LoadClient& client : clients) {
    if (client.connect(plan.socket)) continue;
    result.wrong = plan.socket + ": " + std::strerror(errno);
    return result;
  }
  const auto begin = LoadClock::now();
  const std::uint64_t total =
      std::uint64_t{plan.per_second} * static_cast<std::uint64_t>(plan.length.count()) / 1000;
  const std::chrono::nanoseconds gap(1'000'000'000 / plan.per_second);
  std::vector<pollfd> polled(clients.size());
  while (result.answered < total && LoadClock::now() < begin + plan.length + plan.patience) {
    const auto now = LoadClock::now();
    for (; result.due < total && begin + gap * result.due <= now; ++result.due) {
      clients[result.due % clients.size()].due.push_back(
          {begin + gap * result.due, result.due % plan.targets.size()});
    }
    for (std::size_t i = 0; i < clients.size(); ++i) {
      LoadClient& client = clients[i];
      if (!client.waits() && !client.due.empty() && !client.send_first(plan)) {
        ++result.reconnected;
        if (!client.connect(plan.socket) || !client.send_first(plan)) {
          result.wrong = plan.socket + ": " + std::strerror(errno);
          return result;
        }
      }
      polled[i] = {client.fd(), static_cast<short>(client.waits() ? POLLIN : 0), 0};
    }
    ::poll(polled.data(), polled.size(), 1);
    for (std::size_t i = 0; i < clients.size(); ++i) {
      if (!clients[i].waits() || polled[i].revents == 0 || clients[i].receive(result)) continue;
      // A request without its reply is lost, not asked again.
      clients[i].due.pop_front();
      ++result.reconnected;
      if (!clients[i].connect(plan.socket)) {
        result.wrong = plan.socket + ": " + std::strerror(errno);
        return result;
      }
    }
  }
  return result;
}

}  // namespace paceline::test
