#include "control/daemon/service_link/control_client.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "dataplane/attach/message_socket.h"
#include "dataplane/service/protocol/control_protocol.h"

namespace paceline::daemon {

namespace asio = boost::asio;
using asio::awaitable;
using nlohmann::json;

namespace {

constexpr auto kAwait = asio::use_awaitable;

}  // namespace

ControlClient::ControlClient(asio::io_context& context, ControlSettings settings)
    : context_(context),
      settings_(std::move(settings)),
      wait_(context),
      limit_(context),
      turns_(context) {}

bool ControlClient::connect() {
  // Never waited for: it would hold up all that the daemon does.
  attach::Descriptor fd = attach::connect_socket(settings_.path, attach::kNoPatience);
  if (!fd) {
    absent_ = errno == ENOENT || errno == ECONNREFUSED;
    trouble_ = fmt::format("{}: {}", settings_.path, std::strerror(errno));
    return false;
  }
  absent_ = false;
  ucred peer{};
  socklen_t length = sizeof(peer);
  peer_ = ::getsockopt(fd.get(), SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 ? peer.pid : 0;
  if (::fcntl(fd.get(), F_SETFL, O_NONBLOCK) != 0) {
    trouble_ = fmt::format("{}: {}", settings_.path, std::strerror(errno));
    return false;
  }
  socket_.emplace(context_, fd.release());
  return true;
}

void ControlClient::close(std::string why) {
  trouble_ = std::move(why);
  if (socket_ && socket_->is_open()) {
    boost::system::error_code ignored;
    socket_->close(ignored);
  }
}

void ControlClient::stop() {
  stopped_ = true;
  wait_.cancel();
  close("the daemon ends");
}

awaitable<void> ControlClient::run() {
  std::chrono::nanoseconds wait = settings_.least_wait;
  while (!stopped_) {
    boost::system::error_code error;
    bool good = false;
    ControlAnswer hello;
    {
      // In a turn of its own: nobody uses the previous socket any more.
      co_await turns_.enter();
      const AsyncMutex::Hold hold(turns_);
      if (connect()) {
        json members = json::object();
        hello = co_await ask("hello", std::move(members));
        good = hello.ok() && !stopped_;
        if (!good && !hello.errors.empty()) close(hello.errors.front());
      }
    }
    if (good) {
      connected_ = true;
      trouble_.clear();
      wait = settings_.least_wait;
      if (up) up(hello.body, peer_);
      // The service sends nothing unasked: this wait ends with the connection, or by close().
      co_await socket_->async_wait(asio::posix::stream_descriptor::wait_error,
                                   asio::redirect_error(kAwait, error));
      connected_ = false;
      if (trouble_.empty()) trouble_ = fmt::format("{}: the service has gone", settings_.path);
      close(trouble_);
      if (down) down();
    }
    if (stopped_) break;
    wait_.expires_after(wait);
    co_await wait_.async_wait(asio::redirect_error(kAwait, error));
    wait = std::min(wait * 2, settings_.most_wait);
  }
}

awaitable<ControlAnswer> ControlClient::call(std::string op, json members) {
  co_await turns_.enter();
  const AsyncMutex::Hold hold(turns_);
  if (!connected_) co_return unanswered(trouble_.empty() ? "there is no service" : trouble_);
  co_return co_await ask(std::move(op), std::move(members));
}

awaitable<ControlAnswer> ControlClient::ask(std::string op, json members) {
  const std::uint64_t id = ++last_id_;
  const std::string text = request_text(id, op, members);
  if (text.size() > service::kMostControlBytes) {
    ControlAnswer refused;
    refused.kind = ControlAnswer::Kind::refused;
    refused.errors.push_back(fmt::format("{}: the request has {} bytes; allowed are {}", op,
                                         text.size(), service::kMostControlBytes));
    co_return refused;
  }
  // An answer too late would be taken for that to another request: the connection ends with it. The
  // flag outlives this call, because a timer that has run out cannot be called back.
  auto late = std::make_shared<bool>(false);
  auto over = std::make_shared<bool>(false);
  limit_.expires_after(settings_.answer_limit);
  limit_.async_wait([this, late, over](const boost::system::error_code& error) {
    if (error || *over) return;
    *late = true;
    close("the service does not answer");
  });
  boost::system::error_code error;
  bool sent = false;
  std::string answer;
  std::vector<attach::Descriptor> descriptors;
  ControlAnswer out;
  while (socket_->is_open()) {
    if (!sent) {
      sent = ::send(socket_->native_handle(), text.data(), text.size(),
                    MSG_NOSIGNAL | MSG_DONTWAIT) >= 0;
      if (!sent && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) break;
      if (!sent) {
        co_await socket_->async_wait(asio::posix::stream_descriptor::wait_write,
                                     asio::redirect_error(kAwait, error));
        continue;
      }
    }
    const Receipt receipt = receive_control(socket_->native_handle(), answer, descriptors);
    if (receipt == Receipt::message) {
      out = answer_of(answer, id);
      break;
    }
    if (receipt != Receipt::nothing_yet) break;
    co_await socket_->async_wait(asio::posix::stream_descriptor::wait_read,
                                 asio::redirect_error(kAwait, error));
  }
  *over = true;
  limit_.cancel();
  if (out.kind == ControlAnswer::Kind::unanswered) {
    std::string why = *late ? fmt::format("the service did not answer {} in time", op)
                      : out.errors.empty()
                          ? fmt::format("the service went while it was asked for {}", op)
                          : out.errors.front();
    close(why);
    out.errors = {std::move(why)};
  }
  out.descriptors = std::move(descriptors);
  co_return out;
}

}  // namespace paceline::daemon
