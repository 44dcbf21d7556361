#include "tools/task/ranks/rank_peers.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "dataplane/base/text/printable.h"
#include "tools/cli/cli.h"
#include "tools/task/ranks/meeting_point.h"
#include "tools/task/ranks/rank_proof.h"

namespace paceline::tools {

namespace {

constexpr std::size_t kMostStrangers = 256;
constexpr double kStrangerSeconds = 60;  // to show that one belongs here
constexpr rlim_t kSpareDescriptors = 256;

void allow_descriptors(std::uint32_t ranks) {
  rlimit limit{};
  const rlim_t wanted = ranks + kMostStrangers + kSpareDescriptors;
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted) return;
  limit.rlim_cur = std::min(wanted, limit.rlim_max);
  ::setrlimit(RLIMIT_NOFILE, &limit);  // refused: the last ranks cannot come, and say so
}

std::string text_of_peer(const sockaddr_storage& from) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (from.ss_family == AF_INET6) {
    ::inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6&>(from).sin6_addr, text.data(),
                text.size());
  } else {
    ::inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in&>(from).sin_addr, text.data(),
                text.size());
  }
  std::string out = text.data();
  constexpr std::string_view kMapped = "::ffff:";
  return out.starts_with(kMapped) ? out.substr(kMapped.size()) : out;
}

}  // namespace

RankPeers::RankPeers(std::string token, std::uint32_t ranks)
    : token_(std::move(token)),
      ranks_(ranks),
      listening_(listen_on_all(port_)),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)) {
  allow_descriptors(ranks);
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = listening_.get();
  if (!epoll_ || ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, listening_.get(), &event) != 0) {
    throw std::runtime_error(fmt::format("rank 0 cannot listen: {}", std::strerror(errno)));
  }
}

std::vector<PeerEvent> RankPeers::wait(int milliseconds, int other, double now) {
  std::vector<PeerEvent> events;
  if (other != other_) {
    forget_other();
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = other;
    if (other >= 0) ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, other, &event);
    other_ = other;
  }
  std::array<epoll_event, 64> ready{};
  const int count =
      ::epoll_wait(epoll_.get(), ready.data(), static_cast<int>(ready.size()), milliseconds);
  ++cost_.calls;
  for (int i = 0; i < count; ++i) {
    const int descriptor = ready[static_cast<std::size_t>(i)].data.fd;
    const auto what = ready[static_cast<std::size_t>(i)].events;
    if (descriptor == other_) continue;
    if (descriptor == listening_.get()) {
      take_in(now, events);
      continue;
    }
    const auto found = peers_.find(descriptor);
    if (found == peers_.end()) continue;
    Peer& peer = found->second;
    if ((what & EPOLLOUT) != 0) {
      if (!peer.socket.flush(cost_)) peer.gone = "has ended";
      watch(peer, EPOLL_CTL_MOD);
    }
    if ((what & ~EPOLLOUT) != 0) hear(descriptor, events);
  }
  for (auto at = peers_.begin(); at != peers_.end();) {
    const int descriptor = at->first;
    const bool gone = !at->second.gone.empty();
    ++at;
    if (gone) end(descriptor, events);
  }
  if (strangers() != 0) end_old_strangers(now);
  return events;
}

void RankPeers::forget_other() {
  if (other_ >= 0) ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, other_, nullptr);
  other_ = -1;
}

const Hello& RankPeers::hello(std::uint32_t rank) const {
  return peers_.at(by_rank_.at(rank)).hello;
}

std::string RankPeers::name(std::uint32_t rank) const {
  return fmt::format("rank {} on {}", rank, printable(hello(rank).host));
}

void RankPeers::send(std::uint32_t rank, std::string_view frames) {
  Peer& peer = peers_.at(by_rank_.at(rank));
  if (!peer.gone.empty()) return;
  if (!peer.socket.send(frames, cost_)) peer.gone = "has ended";
  if (peer.socket.has_unsent()) watch(peer, EPOLL_CTL_MOD);
}

void RankPeers::drop(std::uint32_t rank) {
  const int descriptor = by_rank_.at(rank);
  peers_.at(descriptor).socket.send(to_frame(Stop{false}), cost_);
  by_rank_.erase(rank);
  peers_.erase(descriptor);
}

void RankPeers::stop_all(bool whole, double seconds) {
  const std::string stop = to_frame(Stop{whole});
  const double until = wall_seconds() + seconds;
  // Ranks that have connected and were not taken in see now that they will not be.
  listening_.reset();
  for (auto& [descriptor, peer] : peers_) {
    if (peer.proven) peer.socket.send(stop, cost_);
  }
  // The kernel delivers what it has, but only if nothing is unread when the socket is closed. So
  // read until the others close their ends.
  while (!peers_.empty() && wall_seconds() < until) {
    std::vector<pollfd> waits;
    for (auto at = peers_.begin(); at != peers_.end();) {
      Peer& peer = at->second;
      const bool here = peer.proven && peer.socket.flush(cost_) && peer.socket.receive(cost_);
      while (peer.socket.frames().next()) {
      }
      if (!here) {
        at = peers_.erase(at);
        continue;
      }
      if (!peer.socket.has_unsent()) ::shutdown(at->first, SHUT_WR);
      waits.push_back({at->first, POLLIN, 0});
      ++at;
    }
    ::poll(waits.data(), waits.size(), 10);
  }
  peers_.clear();
  by_rank_.clear();
}

void RankPeers::take_in(double now, std::vector<PeerEvent>& events) {
  for (;;) {
    sockaddr_storage from{};
    socklen_t length = sizeof from;
    attach::Descriptor socket(::accept4(listening_.get(), reinterpret_cast<sockaddr*>(&from),
                                        &length, SOCK_CLOEXEC | SOCK_NONBLOCK));
    ++cost_.calls;
    if (!socket) return;
    if (strangers() >= kMostStrangers) {
      events.push_back({PeerEvent::Kind::stranger, 0, FrameKind::hello,
                        fmt::format("{}: {} connections have yet to show that they belong here",
                                    text_of_peer(from), kMostStrangers)});
      continue;
    }
    const int descriptor = socket.get();
    const auto added =
        peers_.emplace(descriptor, Peer{RankSocket(std::move(socket), kMostStrangerFrame),
                                        text_of_peer(from), secret_bytes(kNonceBytes), now});
    Peer& peer = added.first->second;
    if (!peer.socket.send(to_frame(Challenge{peer.nonce}), cost_)) peer.gone = "has ended";
    watch(peer, EPOLL_CTL_ADD);
  }
}

void RankPeers::hear(int descriptor, std::vector<PeerEvent>& events) {
  Peer& peer = peers_.at(descriptor);
  const bool here = peer.socket.receive(cost_);
  while (peer.gone.empty()) {
    const auto frame = peer.socket.frames().next();
    if (!frame) break;
    if (!peer.proven) {
      prove(peer, *frame, events);
    } else {
      events.push_back(
          {PeerEvent::Kind::frame, peer.hello.rank, frame->kind, std::string(frame->payload)});
    }
  }
  const std::string& error = peer.socket.frames().error();
  if (peer.gone.empty() && !error.empty()) peer.gone = "sent " + error;
  if (peer.gone.empty() && !here) {
    peer.gone = peer.socket.frames().empty() ? "has ended" : "has ended within a frame";
  }
}

void RankPeers::prove(Peer& peer, const Frame& frame, std::vector<PeerEvent>& events) {
  const auto hello = frame.kind == FrameKind::hello ? to_hello(frame.payload) : std::nullopt;
  if (!hello) {
    peer.gone = "does not speak the protocol of ranks";
    return;
  }
  const std::string expected = rank_proof(token_, RankRole::other, peer.nonce, hello->nonce);
  if (!same_proof(expected, hello->proof)) {
    peer.gone = "does not belong to this command";
    return;
  }
  if (hello->rank == 0 || hello->rank >= ranks_ || by_rank_.contains(hello->rank)) {
    peer.gone = fmt::format("says that it is rank {}, which is not free", hello->rank);
    return;
  }
  peer.hello = *hello;
  peer.proven = true;
  peer.socket.frames().set_most(kMostFrame);
  by_rank_[hello->rank] = peer.socket.descriptor();
  events.push_back({PeerEvent::Kind::came, hello->rank, FrameKind::hello, {}});
  const std::string proof = rank_proof(token_, RankRole::first, peer.nonce, hello->nonce);
  if (!peer.socket.send(to_frame(Welcome{proof}), cost_)) peer.gone = "has ended";
}

void RankPeers::watch(const Peer& peer, int operation) {
  epoll_event event{};
  event.events = EPOLLIN | (peer.socket.has_unsent() ? std::uint32_t{EPOLLOUT} : 0U);
  event.data.fd = peer.socket.descriptor();
  ::epoll_ctl(epoll_.get(), operation, event.data.fd, &event);
}

void RankPeers::end(int descriptor, std::vector<PeerEvent>& events) {
  const Peer& peer = peers_.at(descriptor);
  if (peer.proven) {
    const std::uint32_t rank = peer.hello.rank;
    events.push_back({PeerEvent::Kind::gone, rank, FrameKind::hello,
                      fmt::format("{} {}", name(rank), peer.gone)});
    by_rank_.erase(rank);
  } else {
    events.push_back({PeerEvent::Kind::stranger, 0, FrameKind::hello,
                      fmt::format("{} {}", peer.address, peer.gone)});
  }
  peers_.erase(descriptor);
}

void RankPeers::end_old_strangers(double now) {
  for (auto& [descriptor, peer] : peers_) {
    if (!peer.proven && now - peer.since > kStrangerSeconds) peer.gone = "has said nothing";
  }
}

}  // namespace paceline::tools
