#include "dataplane/service/cm/cm_service.h"

#include <sys/random.h>
#include <sys/socket.h>

#include <boost/asio/post.hpp>

#include <array>
#include <cerrno>
#include <chrono>
#include <vector>

#include "dataplane/driver/clock/steady_time.h"

namespace paceline::service::cm {

namespace {

// Communication ids and initial PSNs must not be predictable.
std::uint64_t drawn_seed() {
  std::uint64_t seed = 0;
  return ::getrandom(&seed, sizeof seed, 0) == sizeof seed
             ? seed
             : static_cast<std::uint64_t>(steady_time().count);
}

}  // namespace

CmService::CmService(boost::asio::io_context& context, NicBook nics, Leave leave)
    : context_(context),
      timer_(context),
      manager_(std::move(nics), drawn_seed()),
      leave_(std::move(leave)) {}

int CmService::open_channel(std::uint32_t owner, const Visible& seen, Allowance& allowance,
                            std::uint32_t& channel, int& programs_end) {
  Held held;
  if (!held.take(allowance, 1)) return EMFILE;
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) return errno;
  attach::Descriptor own(ends[0]);
  programs_end = ends[1];
  channel = manager_.open_channel(seen);
  Socket& socket = sockets_.try_emplace(channel, context_, owner).first->second;
  socket.held = std::move(held);
  socket.programs_end.reset(programs_end);
  socket.end.assign(own.release());
  boost::asio::post(context_, [this, opened = channel] {
    const auto at = sockets_.find(opened);
    if (at != sockets_.end()) at->second.programs_end.reset();
  });
  watch(channel);
  return 0;
}

// The service's end becomes readable when the program has closed its own. A program that writes to
// it loses the channel as well: commands come by the operation cm_command, never this way.
void CmService::watch(std::uint32_t channel) {
  sockets_.at(channel).end.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                                      [this, channel](const boost::system::error_code& error) {
                                        if (error || !sockets_.contains(channel)) return;
                                        close(channel);
                                        settle();
                                      });
}

void CmService::close(std::uint32_t channel) {
  sockets_.erase(channel);
  manager_.close_channel(steady_time(), channel);
}

void CmService::close_channels(std::uint32_t owner) {
  std::vector<std::uint32_t> own;
  for (const auto& [channel, socket] : sockets_) {
    if (socket.owner == owner) own.push_back(channel);
  }
  for (const std::uint32_t channel : own) close(channel);
  if (!own.empty()) settle();
}

bool CmService::owns(std::uint32_t owner, std::uint32_t channel) const {
  const auto at = sockets_.find(channel);
  return at != sockets_.end() && at->second.owner == owner;
}

CmService::Ran CmService::run(std::uint32_t owner, const UcmRequest& request) {
  Ran ran;
  if (!owns(owner, request.channel) ||
      (request.other_channel != 0 && !owns(owner, request.other_channel))) {
    ran.result.error = EACCES;
    return ran;
  }
  ran.result = commands_.run(steady_time(), request);
  settle();
  ran.drained = drain(request.channel);
  ran.other_drained = request.other_channel != 0 && drain(request.other_channel);
  return ran;
}

bool CmService::drain(std::uint32_t channel) {
  Socket& socket = sockets_.at(channel);
  if (!socket.readable || manager_.has_events(channel)) return false;
  socket.readable = false;
  return true;
}

void CmService::take_away(std::size_t nic) {
  manager_.take_away(nic);
  settle();
}

void CmService::arrive(const Parcel& parcel, std::span<const std::byte> bytes) {
  manager_.arrive(steady_time(), parcel, bytes);
  settle();
}

void CmService::settle() {
  for (const Parcel& parcel : manager_.mail().take_leaving()) leave_(parcel);
  for (const std::uint32_t channel : manager_.take_woken()) {
    const auto at = sockets_.find(channel);
    if (at == sockets_.end() || at->second.readable || !manager_.has_events(channel)) continue;
    const char byte = 0;
    at->second.readable =
        ::send(at->second.end.native_handle(), &byte, 1, MSG_DONTWAIT | MSG_NOSIGNAL) == 1;
  }
  const Nanos next = manager_.deadline();
  if (next.count == armed_.count) return;
  armed_ = next;
  timer_.cancel();
  if (next.count == kNeverNanos.count) return;
  timer_.expires_after(std::chrono::nanoseconds(next.count - steady_time().count));
  timer_.async_wait([this](const boost::system::error_code& error) {
    if (error) return;
    armed_ = kNeverNanos;
    manager_.expire(steady_time());
    settle();
  });
}

CmCounts CmService::counts(std::uint32_t owner) const {
  CmCounts out;
  for (const auto& [channel, socket] : sockets_) {
    if (socket.owner != owner) continue;
    ++out.channels;
    const ConnectionManager::Holdings held = manager_.holdings_of(channel);
    out.ids += held.ids;
    out.listeners += held.listeners;
  }
  return out;
}

}  // namespace paceline::service::cm
