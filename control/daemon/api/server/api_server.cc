#include "control/daemon/api/server/api_server.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <chrono>
#include <string_view>
#include <utility>

#include "control/daemon/api/openapi.h"
#include "control/daemon/api/server/http_session.h"
#include "control/daemon/api/server/server_state.h"
#include "control/daemon/api/server/tls.h"
#include "dataplane/attach/descriptors/foreign_descriptors.h"

namespace paceline::daemon {

namespace {

namespace net = boost::asio;

template <class Socket>
void let_go(const ServerState& state, Socket& socket) {
  boost::system::error_code failed;
  if (socket.is_open()) state.aside->close(attach::Descriptor(socket.release(failed)));
}

// `serve` makes the coroutine of a connection of its socket.
template <class Acceptor, class Serve>
net::awaitable<void> accept_on(std::shared_ptr<ServerState> state,
                               std::shared_ptr<Acceptor> acceptor, Serve serve) {
  net::steady_timer breath(acceptor->get_executor());
  while (acceptor->is_open() && !state->stopped) {
    boost::system::error_code error;
    auto socket = co_await acceptor->async_accept(net::redirect_error(net::use_awaitable, error));
    if (state->stopped || !acceptor->is_open()) {
      let_go(*state, socket);
      co_return;
    }
    if (error) {
      // Mostly no descriptors are left: waiting clients are let in when there are some again.
      if (error != net::error::connection_aborted) {
        spdlog::warn("a client of the API could not be let in: {}", error.message());
        breath.expires_after(std::chrono::milliseconds(100));
        co_await breath.async_wait(net::redirect_error(net::use_awaitable, error));
      }
      continue;
    }
    ++state->counts.connections;
    if (!state->make_room()) {
      ++state->counts.turned_away;
      turn_away(socket.native_handle(), "connections: as many as allowed are busy");
      let_go(*state, socket);
      continue;
    }
    try {
      net::co_spawn(acceptor->get_executor(), serve(std::move(socket)), net::detached);
    } catch (const std::exception& failure) {
      spdlog::warn("a client of the API could not be let in: {}", failure.what());
    }
  }
}

using TcpAcceptor = net::ip::tcp::acceptor;

std::shared_ptr<TcpAcceptor> tcp_acceptor(net::io_context& context,
                                          const net::ip::tcp::endpoint& endpoint,
                                          boost::system::error_code& error) {
  auto acceptor = std::make_shared<TcpAcceptor>(context);
  acceptor->open(endpoint.protocol(), error);
  if (!error) acceptor->set_option(net::socket_base::reuse_address(true), error);
  if (!error) acceptor->bind(endpoint, error);
  if (!error) acceptor->listen(256, error);
  return acceptor;
}

}  // namespace

bool ServerState::make_room() {
  std::size_t open = 0;
  for (const auto& connection : connections) open += connection->closing ? 0 : 1;
  if (open < settings.most_connections) return true;
  for (const auto& connection : connections) {
    if (connection->busy || connection->closing) continue;
    connection->close();
    ++counts.made_room;
    return true;
  }
  return false;
}

void ServerState::stop() {
  if (std::exchange(stopped, true)) return;
  hub = nullptr;
  for (const auto& close : close_acceptors) close();
  close_acceptors.clear();
  listener.close();
  for (const auto& connection : connections) {
    if (!connection->busy || connection->listens) connection->close();
  }
}

ApiServer::ApiServer(net::io_context& context, ApiSettings settings, const Endpoints& endpoints,
                     EventHub& hub)
    : context_(context),
      endpoints_(endpoints),
      state_(std::make_shared<ServerState>(std::move(settings), hub)) {}

ApiServer::~ApiServer() { stop(); }

std::string ApiServer::start() {
  const ApiSettings& settings = state_->settings;
  state_->router.emplace(endpoints_);
  const std::vector<std::string> contradictions = state_->router->contradictions();
  if (!contradictions.empty()) return "endpoints: " + contradictions.front();
  state_->description = openapi_text(endpoints_, settings.version);
  if (settings.socket.empty() && settings.descriptor < 0 && !settings.tcp) {
    return "api: neither a Unix socket nor TCP; nothing to listen on";
  }
  std::string wrong;
  if (!settings.socket.empty() || settings.descriptor >= 0) wrong = open_unix();
  if (wrong.empty() && settings.tcp) wrong = open_tcp();
  if (wrong.empty() && settings.metrics_port) open_metrics();
  if (!wrong.empty()) stop();
  return wrong;
}

std::string ApiServer::open_unix() {
  const ApiSettings& settings = state_->settings;
  if (!settings.group.empty()) {
    state_->access.group = group_number(settings.group);
    if (!state_->access.group)
      return fmt::format("group {}: there is no such group", settings.group);
  }
  state_->access.world_readable = settings.world_readable;
  const mode_t mode = settings.world_readable ? 0666 : state_->access.group ? 0660 : 0600;
  std::string wrong = settings.descriptor >= 0
                          ? state_->listener.adopt(settings.descriptor)
                          : state_->listener.open(settings.socket, mode, state_->access.group);
  if (!wrong.empty()) return wrong;
  using Acceptor = net::local::stream_protocol::acceptor;
  const auto acceptor = std::make_shared<Acceptor>(context_);
  boost::system::error_code error;
  acceptor->assign(net::local::stream_protocol(), state_->listener.descriptor(), error);
  if (error) return "unix socket: " + error.message();
  state_->listener.release();
  attach::allow_descriptors(acceptor->native_handle(), false);
  const bool given = settings.descriptor >= 0;  // by a manager, which has it, too
  state_->close_acceptors.emplace_back([acceptor, given, aside = state_->aside] {
    boost::system::error_code failed;
    attach::Descriptor socket(acceptor->release(failed));
    if (given) {
      aside->close_here(std::move(socket));
    } else {
      attach::close_listening(std::move(socket), *aside);
    }
  });
  const auto serve = [state = state_](net::local::stream_protocol::socket socket) {
    return serve_local(state, std::move(socket));
  };
  net::co_spawn(context_, accept_on(state_, acceptor, serve), net::detached);
  return {};
}

std::string ApiServer::open_tcp() {
  const TcpSettings& settings = *state_->settings.tcp;
  const auto tls = std::make_shared<net::ssl::context>(net::ssl::context::tls_server);
  if (std::string wrong = set_up_tls(settings, *tls); !wrong.empty()) return "tcp: " + wrong;
  if (std::string wrong = state_->tokens.read_file(settings.tokens); !wrong.empty()) {
    return "tcp: " + wrong;
  }
  boost::system::error_code error;
  const auto address = net::ip::make_address(settings.address, error);
  if (error) {
    return fmt::format("tcp: address \"{}\"; allowed: an IPv4 or IPv6 address", settings.address);
  }
  const std::shared_ptr<TcpAcceptor> acceptor =
      tcp_acceptor(context_, {address, settings.port}, error);
  if (error) {
    return fmt::format("tcp: {} port {}: {}", settings.address, settings.port, error.message());
  }
  state_->port = acceptor->local_endpoint().port();
  state_->close_acceptors.emplace_back([acceptor] {
    boost::system::error_code ignored;
    acceptor->close(ignored);
  });
  const auto serve = [state = state_, tls](net::ip::tcp::socket socket) {
    return serve_tls(state, std::move(socket), tls);
  };
  net::co_spawn(context_, accept_on(state_, acceptor, serve), net::detached);
  return {};
}

// The daemon works on without the listener if another process has the port.
void ApiServer::open_metrics() {
  boost::system::error_code error;
  const net::ip::tcp::endpoint endpoint(net::ip::address_v4::loopback(),
                                        *state_->settings.metrics_port);
  const std::shared_ptr<TcpAcceptor> acceptor = tcp_acceptor(context_, endpoint, error);
  if (error) {
    state_->metrics_trouble =
        fmt::format("metrics: 127.0.0.1 port {}: {}", endpoint.port(), error.message());
    return;
  }
  state_->metrics_port = acceptor->local_endpoint().port();
  state_->close_acceptors.emplace_back([acceptor] {
    boost::system::error_code ignored;
    acceptor->close(ignored);
  });
  const auto serve = [state = state_](net::ip::tcp::socket socket) {
    return serve_metrics(state, std::move(socket));
  };
  net::co_spawn(context_, accept_on(state_, acceptor, serve), net::detached);
}

void ApiServer::stop() { state_->stop(); }
std::size_t ApiServer::connections() const { return state_->connections.size(); }
std::uint16_t ApiServer::port() const { return state_->port; }
std::uint16_t ApiServer::metrics_port() const { return state_->metrics_port; }
const std::string& ApiServer::metrics_trouble() const { return state_->metrics_trouble; }
ApiCounts ApiServer::counts() const { return state_->counts; }

}  // namespace paceline::daemon
