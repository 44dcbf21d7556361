// One connection, from its first request to its last; internal to this room.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/ssl/context.hpp>

#include <memory>
#include <string>

#include "control/daemon/api/server/server_state.h"

namespace paceline::daemon {

// Sends one 503 without waiting, to a client that could not be let in.
void turn_away(int socket, const std::string& why);

// Until the client leaves, errs or idles too long, or the server stops. Throws nothing.
boost::asio::awaitable<void> serve_local(std::shared_ptr<ServerState> state,
                                         boost::asio::local::stream_protocol::socket socket);
// Serves only kMetricsPaths, to any caller.
boost::asio::awaitable<void> serve_metrics(std::shared_ptr<ServerState> state,
                                           boost::asio::ip::tcp::socket socket);
boost::asio::awaitable<void> serve_tls(std::shared_ptr<ServerState> state,
                                       boost::asio::ip::tcp::socket socket,
                                       std::shared_ptr<boost::asio::ssl::context> tls);

}  // namespace paceline::daemon
