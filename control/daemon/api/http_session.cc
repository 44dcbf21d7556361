#include "control/daemon/api/http_session.h"

#include <spdlog/spdlog.h>
#include <sys/socket.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <boost/beast/ssl.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <exception>
#include <type_traits>
#include <utility>

#include "control/daemon/api/event_queue.h"
#include "control/daemon/api/events.h"
#include "control/daemon/api/local_stream.h"
#include "control/daemon/api/target.h"
#include "dataplane/base/printable.h"

namespace paceline::daemon {

namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using boost::system::error_code;
using std::chrono::milliseconds;

using TlsStream = beast::ssl_stream<beast::tcp_stream>;
using Parser = http::request_parser<http::string_body>;

constexpr milliseconds kHandshake{10'000};
// After a refusal that ends the connection, what the client still sends is read and thrown away
// for this long, so that it sees the refusal and not a reset.
constexpr milliseconds kFarewell{1'000};
constexpr std::size_t kMostFarewell = 1 << 20;

auto into(error_code& error) { return asio::redirect_error(asio::use_awaitable, error); }

template <class Stream>
class StreamConnection : public Connection {
 public:
  template <class... Parts>
  explicit StreamConnection(Parts&&... parts) : stream(std::forward<Parts>(parts)...) {}
  void close() override {
    closing = true;
    beast::get_lowest_layer(stream).close();
  }
  auto& lowest() { return beast::get_lowest_layer(stream); }

  Stream stream;
  beast::flat_buffer buffer;
};

// Tells the hub to forget a listener, also when its coroutine is destroyed where it waits.
class Listening {
 public:
  Listening(std::shared_ptr<ServerState> state, EventHub::Listener listener)
      : state_(std::move(state)), number_(state_->hub->listen(std::move(listener))) {}
  Listening(const Listening&) = delete;
  Listening& operator=(const Listening&) = delete;
  ~Listening() {
    if (state_->hub != nullptr) state_->hub->leave(number_);
  }

 private:
  std::shared_ptr<ServerState> state_;
  std::uint64_t number_;
};

// Shared by listener and hub, because the hub may call a listener that has just left.
struct Feed {
  Feed(const asio::any_io_executor& executor, const ApiSettings& settings,
       std::vector<std::string> wanted)
      : queue(settings.most_queued_events, settings.most_queued_bytes),
        wake(executor),
        topics(std::move(wanted)) {}
  EventQueue queue;
  asio::steady_timer wake;
  std::vector<std::string> topics;
  bool gone = false;  // the client
};

// The response to one request, except for events.
struct Outgoing {
  Reply reply{};
  std::string allow{};
  bool challenge = false;             // 401
  std::unique_ptr<Place> listener{};  // not null: events are sent instead of the reply
  std::vector<std::string> topics{};
};

std::string_view text_of(beast::string_view text) { return {text.data(), text.size()}; }

// A request that could not be read as one. 0: the connection is simply over.
unsigned status_of(const error_code& error) {
  if (error == http::error::end_of_stream || error == http::error::partial_message) return 0;
  if (error == http::error::header_limit) return 431;
  if (error == http::error::body_limit) return 413;
  return error.category() == http::make_error_code(http::error::bad_method).category() ? 400 : 0;
}

Reply unreadable(unsigned status, const error_code& error, const ApiSettings& settings) {
  if (status == 431) {
    return refusal(431, {"header: longer than " + std::to_string(settings.most_header) + " bytes"});
  }
  if (status == 413) {
    return refusal(413, {"body: longer than " + std::to_string(settings.most_body) + " bytes"});
  }
  return refusal(400, {"request: not HTTP/1.1: " + error.message()});
}

// Endpoint and request, or the refusal in `out`.
const Endpoint* admit(ServerState& state, const Connection& connection,
                      const http::request<http::string_body>& message, Request& request,
                      Outgoing& out) {
  if (message.version() >= 11 && message.count(http::field::host) != 1) {
    out.reply =
        refusal(400, {"header host: given " + std::to_string(message.count(http::field::host)) +
                      " times; allowed: once"});
    return nullptr;
  }
  if (message.target().size() > state.settings.most_target) {
    out.reply =
        refusal(414, {"target: " + std::to_string(message.target().size()) +
                      " bytes; allowed: at most " + std::to_string(state.settings.most_target)});
    return nullptr;
  }
  if (!connection.may_read) {
    out.reply = refusal(403, {"caller: this user may not use this API; allowed: root, the daemon's "
                              "own user, its group"});
    return nullptr;
  }
  std::optional<Caller> caller = connection.caller;
  if (!caller) caller = state.tokens.caller_by_header(text_of(message[http::field::authorization]));
  if (!caller) {
    out.reply = refusal(401, {"header authorization: no valid token; allowed: Bearer TOKEN"});
    out.challenge = true;
    return nullptr;
  }
  const std::string_view path =
      text_of(message.target()).substr(0, text_of(message.target()).find('?'));
  if (connection.metrics_only &&
      std::find(kMetricsPaths.begin(), kMetricsPaths.end(), path) == kMetricsPaths.end()) {
    out.reply = refusal(404, {"target: " + in_quotes(path) +
                              " is not here; allowed: /metrics and /healthz, the rest of the API "
                              "is at the Unix socket"});
    return nullptr;
  }
  Incoming incoming;
  incoming.method = text_of(message.method_string());
  incoming.target = text_of(message.target());
  incoming.content_type = text_of(message[http::field::content_type]);
  incoming.body = message.body();
  Admission admission = state.router->admit(incoming, *caller);
  request = std::move(admission.request);
  out.reply = std::move(admission.refused);
  out.allow = std::move(admission.allow);
  return admission.endpoint;
}

// Runs the handler; what it throws becomes a reply.
asio::awaitable<void> handle(const Endpoint& endpoint, Request request, Outgoing& out) {
  std::string thrown;
  try {
    out.reply = co_await endpoint.handle(std::move(request));
  } catch (const std::exception& error) {
    thrown = error.what();
    if (thrown.empty()) thrown = "no reason given";
  } catch (...) {
    thrown = "no reason given";
  }
  if (!thrown.empty()) {
    spdlog::error("{} {}: {}", endpoint.method, endpoint.path, thrown);
    out.reply = refusal(500, {"daemon: " + thrown});
  }
}

asio::awaitable<void> answer(ServerState& state, const Connection& connection,
                             const http::request<http::string_body>& message, Outgoing& out) {
  Request request;
  const Endpoint* endpoint = admit(state, connection, message, request, out);
  if (endpoint == nullptr) co_return;
  if (endpoint->handle) {
    co_await handle(*endpoint, std::move(request), out);
  } else if (endpoint->path == kOpenApiPath) {
    out.reply.text = state.description;
  } else if (state.stopped) {
    out.reply = refusal(503, {"daemon: it is ending"});
  } else {
    auto place = std::make_unique<Place>(state.listeners, request.caller);
    if (std::string wrong = place->take(); !wrong.empty()) {
      out.reply = refusal(429, {std::move(wrong)});
      co_return;
    }
    out.listener = std::move(place);
    // Checked by the router.
    read_topics(request.in_query("topics"), out.topics);
    out.reply.content_type = "text/event-stream";
  }
}

http::response<http::string_body> response_of(Outgoing& out, const ServerState& state) {
  http::response<http::string_body> response;
  response.version(11);
  const unsigned status = out.reply.status;
  response.result(status >= 200 && status <= 599 ? status : 500);
  response.set(http::field::server, "pacelined/" + state.settings.version);
  response.set(http::field::content_type, out.reply.content_type);
  response.set(http::field::cache_control, "no-store");
  response.set("X-Content-Type-Options", "nosniff");
  if (!out.allow.empty()) response.set(http::field::allow, out.allow);
  if (out.challenge) response.set(http::field::www_authenticate, "Bearer realm=\"pacelined\"");
  if (out.reply.text.empty()) {
    // In ASCII: clients print it to terminals.
    response.body() = out.reply.body.dump(-1, ' ', true, Json::error_handler_t::replace);
    response.body() += '\n';
  } else {
    response.body() = std::move(out.reply.text);
  }
  return response;
}

void count(ServerState& state, unsigned status) {
  ++state.counts.requests;
  if (status >= 500) {
    ++state.counts.failed;
  } else if (status >= 400) {
    ++state.counts.refused;
  }
}

// False: it could not be sent.
template <class Stream>
asio::awaitable<bool> send(StreamConnection<Stream>& connection, const ServerState& state,
                           http::response<http::string_body>& response, bool without_body) {
  response.content_length(response.body().size());
  http::response_serializer<http::string_body> serializer(response);
  connection.lowest().expires_after(milliseconds(state.settings.idle_ms));
  error_code error;
  if (without_body) {
    serializer.split(true);
    co_await http::async_write_header(connection.stream, serializer, into(error));
    // A serializer that is split reports the end of the header so.
    if (error == http::error::need_buffer) error = {};
  } else {
    co_await http::async_write(connection.stream, serializer, into(error));
  }
  co_return !error;
}

template <class Stream>
asio::awaitable<void> say_farewell(StreamConnection<Stream>& connection, bool read_on) {
  error_code error;
  connection.lowest().expires_after(kFarewell);
  if constexpr (std::is_same_v<Stream, TlsStream>) {
    co_await connection.stream.async_shutdown(into(error));
  }
  connection.lowest().socket().shutdown(asio::socket_base::shutdown_send, error);
  if (!read_on) co_return;
  connection.buffer.clear();
  std::array<char, 16384> waste{};
  std::size_t total = 0;
  while (total < kMostFarewell) {
    const std::size_t got =
        co_await connection.lowest().async_read_some(asio::buffer(waste), into(error));
    if (error) co_return;
    total += got;
  }
}

// A listener has nothing more to say; when it leaves, the feed learns of it.
template <class Stream>
asio::awaitable<void> watch_for_leaving(std::shared_ptr<StreamConnection<Stream>> connection,
                                        std::shared_ptr<Feed> feed) {
  std::array<char, 512> waste{};
  error_code error;
  while (!error) {
    co_await connection->stream.async_read_some(asio::buffer(waste), into(error));
  }
  feed->gone = true;
  feed->wake.cancel();
}

template <class Stream>
asio::awaitable<void> send_events(std::shared_ptr<ServerState> state,
                                  std::shared_ptr<StreamConnection<Stream>> connection,
                                  std::vector<std::string> topics, std::unique_ptr<Place> place) {
  const std::unique_ptr<Place> held = std::move(place);
  const asio::any_io_executor executor = connection->stream.get_executor();
  const auto feed = std::make_shared<Feed>(executor, state->settings, std::move(topics));
  // Weak: its timer must not outlive the context, which the hub may.
  const Listening listening(
      state, [to = std::weak_ptr<Feed>(feed)](std::string_view topic, const Json& data) {
        const std::shared_ptr<Feed> there = to.lock();
        if (there == nullptr) return;
        const auto& wanted = there->topics;
        if (std::find(wanted.begin(), wanted.end(), topic) == wanted.end()) return;
        there->queue.push(topic, data);
        there->wake.cancel();
      });
  connection->listens = true;
  connection->lowest().expires_never();
  asio::co_spawn(executor, watch_for_leaving<Stream>(connection, feed), asio::detached);

  std::string text = "HTTP/1.1 200 OK\r\nServer: pacelined/" + state->settings.version +
                     "\r\nContent-Type: text/event-stream\r\nCache-Control: no-store\r\n"
                     "X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n: welcome\n\n";
  bool last = false;
  for (;;) {
    error_code error;
    const std::size_t events = feed->queue.size();
    text += feed->queue.take();
    if (!text.empty()) {
      connection->lowest().expires_after(milliseconds(state->settings.idle_ms));
      // NOLINTNEXTLINE(bugprone-use-after-move): the frame's end is taken for a use of `topics`
      co_await asio::async_write(connection->stream, asio::buffer(text), into(error));
      text.clear();
      if (!error) state->counts.events += events;
    }
    if (error || feed->gone || connection->closing || last) break;
    last = feed->queue.overflowed();
    if (last && feed->queue.empty()) break;
    if (!feed->queue.empty()) continue;
    feed->wake.expires_after(milliseconds(state->settings.keep_alive_ms));
    co_await feed->wake.async_wait(into(error));
    if (!error) text = ": still here\n\n";
  }
  if (feed->queue.overflowed()) ++state->counts.slow_listeners;
}

// One request and its reply. False: the last of this connection.
template <class Stream>
asio::awaitable<bool> serve_one(std::shared_ptr<ServerState> state,
                                std::shared_ptr<StreamConnection<Stream>> connection,
                                Membership& membership) {
  Parser parser;
  parser.header_limit(state->settings.most_header);
  parser.body_limit(state->settings.most_body);
  connection->lowest().expires_after(milliseconds(state->settings.idle_ms));
  error_code error;
  co_await http::async_read_header(connection->stream, connection->buffer, parser, into(error));
  if (!error && !parser.is_done()) {
    if (beast::iequals(parser.get()[http::field::expect], "100-continue")) {
      static constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
      co_await asio::async_write(connection->stream, asio::buffer(kContinue), into(error));
    }
    if (!error) {
      co_await http::async_read(connection->stream, connection->buffer, parser, into(error));
    }
  }
  if (connection->closing) co_return false;

  membership.set_busy(true);
  Outgoing out;
  bool keep = false;
  bool head = false;
  if (error) {
    const unsigned status = status_of(error);
    if (status == 0) co_return false;
    out.reply = unreadable(status, error, state->settings);
  } else {
    keep = parser.get().keep_alive();
    head = parser.get().method() == http::verb::head;
    co_await answer(*state, *connection, parser.get(), out);
    if (out.listener != nullptr && !head) {
      count(*state, 200);
      co_await send_events<Stream>(state, connection, std::move(out.topics),
                                   std::move(out.listener));
      co_await say_farewell(*connection, false);
      co_return false;
    }
  }
  http::response<http::string_body> response = response_of(out, *state);
  // Nobody tries a second token on one connection.
  keep = keep && !state->stopped && !out.challenge && connection->may_read;
  response.keep_alive(keep);
  count(*state, response.result_int());
  const bool sent = co_await send(*connection, *state, response, head);
  if (sent && !keep) co_await say_farewell(*connection, static_cast<bool>(error));
  membership.set_busy(false);
  co_return sent&& keep && !state->stopped && !connection->closing;
}

template <class Stream>
asio::awaitable<void> serve(std::shared_ptr<ServerState> state,
                            std::shared_ptr<StreamConnection<Stream>> connection) {
  try {
    Membership membership(state, connection);
    if constexpr (std::is_same_v<Stream, TlsStream>) {
      error_code error;
      connection->lowest().expires_after(kHandshake);
      co_await connection->stream.async_handshake(asio::ssl::stream_base::server, into(error));
      if (error) co_return;
    }
    bool more = !state->stopped;
    while (more) more = co_await serve_one<Stream>(state, connection, membership);
    connection->close();
  } catch (const std::exception& error) {
    spdlog::error("a client of the API is let go: {}", error.what());
  }
}

// Takes a place for the connection. nullptr: none was free, and the connection has been refused.
template <class Stream>
std::unique_ptr<Place> place_of(ServerState& state, StreamConnection<Stream>& connection) {
  auto place = std::make_unique<Place>(state.local_callers,
                                       connection.caller.value_or(Caller{"a stranger", false}));
  const std::string wrong = place->take();
  if (wrong.empty()) return place;
  ++state.counts.turned_away;
  turn_away(connection.lowest().socket().native_handle(), wrong);
  return nullptr;
}

}  // namespace

void turn_away(int socket, const std::string& why) {
  const std::string body = Json{{"errors", {why}}}.dump(-1, ' ', true);
  const std::string text =
      "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Type: "
      "application/json\r\nContent-Length: " +
      std::to_string(body.size()) + "\r\n\r\n" + body;
  static_cast<void>(::send(socket, text.data(), text.size(), MSG_DONTWAIT | MSG_NOSIGNAL));
}

asio::awaitable<void> serve_local(std::shared_ptr<ServerState> state,
                                  asio::local::stream_protocol::socket socket) {
  auto connection =
      std::make_shared<StreamConnection<LocalStream>>(std::move(socket), state->aside);
  connection->caller = local_caller(connection->lowest().socket().native_handle(), state->access);
  connection->may_read = connection->caller.has_value();
  if (const auto place = place_of(*state, *connection)) {
    co_await serve<LocalStream>(state, connection);
  }
}

asio::awaitable<void> serve_metrics(std::shared_ptr<ServerState> state,
                                    asio::ip::tcp::socket socket) {
  auto connection = std::make_shared<StreamConnection<beast::tcp_stream>>(std::move(socket));
  connection->caller = Caller{"metrics", false};
  connection->metrics_only = true;
  if (const auto place = place_of(*state, *connection)) {
    co_await serve<beast::tcp_stream>(state, connection);
  }
}

asio::awaitable<void> serve_tls(std::shared_ptr<ServerState> state, asio::ip::tcp::socket socket,
                                std::shared_ptr<asio::ssl::context> tls) {
  auto connection = std::make_shared<StreamConnection<TlsStream>>(std::move(socket), *tls);
  co_await serve<TlsStream>(std::move(state), std::move(connection));
}

}  // namespace paceline::daemon
