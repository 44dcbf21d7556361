#include "control/daemon/api/server/http_session.h"

#include <spdlog/spdlog.h>
#include <sys/socket.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/core/string.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/status.hpp>
#include <boost/beast/http/string_body.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <exception>
#include <string>
#include <utility>

#include "control/daemon/api/events.h"
#include "control/daemon/api/server/event_queue.h"
#include "control/daemon/api/target.h"
#include "dataplane/base/text/printable.h"

namespace paceline::daemon {

namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using boost::system::error_code;
using std::chrono::milliseconds;

using Parser = http::request_parser<http::string_body>;

// After a refusal that ends the connection, what the client still sends is read and thrown away
// for this long, so that it sees the refusal and not a reset.
constexpr milliseconds kFarewell{1'000};
constexpr std::size_t kMostFarewell = 1 << 20;

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

// Runs the handler; an exception becomes a reply.
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

// The header of a response, and its body unless only the header is asked for.
std::string response_of(Outgoing& out, const ServerState& state, bool keep, bool without_body) {
  if (out.reply.text.empty()) {
    // In ASCII: clients print it to terminals.
    out.reply.text = out.reply.body.dump(-1, ' ', true, Json::error_handler_t::replace) + '\n';
  }
  if (out.reply.status < 200 || out.reply.status > 599) out.reply.status = 500;
  std::string text = "HTTP/1.1 " + std::to_string(out.reply.status) + ' ';
  text += text_of(http::obsolete_reason(http::int_to_status(out.reply.status)));
  const auto field = [&text](std::string_view name, std::string_view value) {
    text.append("\r\n").append(name).append(": ").append(value);
  };
  field("Server", "pacelined/" + state.settings.version);
  field("Content-Type", out.reply.content_type);
  field("Cache-Control", "no-store");
  field("X-Content-Type-Options", "nosniff");
  if (!out.allow.empty()) field("Allow", out.allow);
  if (out.challenge) field("WWW-Authenticate", "Bearer realm=\"pacelined\"");
  if (!keep) field("Connection", "close");
  field("Content-Length", std::to_string(out.reply.text.size()));
  text += "\r\n\r\n";
  if (!without_body) text += out.reply.text;
  return text;
}

void count(ServerState& state, unsigned status) {
  ++state.counts.requests;
  if (status >= 500) {
    ++state.counts.failed;
  } else if (status >= 400) {
    ++state.counts.refused;
  }
}

asio::awaitable<void> say_farewell(Connection& connection, bool read_on) {
  connection.stream->expires_after(kFarewell);
  co_await connection.stream->end_writing();
  if (!read_on) co_return;
  error_code error;
  std::size_t total = 0;
  while (!error && total < kMostFarewell) {
    const std::size_t got = co_await connection.stream->discard_some(error);
    total += got;
  }
}

// Until the parser has the header, or all.
asio::awaitable<void> read_into(Connection& connection, Parser& parser, bool header_alone,
                                error_code& error) {
  parser.eager(!header_alone);
  std::array<char, 16384> piece{};
  for (;;) {
    error = {};
    if (!connection.unread.empty()) {
      connection.unread.erase(0, parser.put(asio::buffer(connection.unread), error));
      if (error && error != http::error::need_more) co_return;
    }
    if (header_alone ? parser.is_header_done() : parser.is_done()) {
      error = {};
      co_return;
    }
    if (!error && !connection.unread.empty()) continue;
    const std::size_t got = co_await connection.stream->read_some(asio::buffer(piece), error);
    connection.unread.append(piece.data(), got);
    if (error == asio::error::eof) {
      if (!parser.got_some()) {
        error = http::error::end_of_stream;
        co_return;
      }
      error = {};
      parser.put_eof(error);
      co_return;
    }
    if (error) co_return;
  }
}

// A listener has nothing more to say; when it leaves, the feed learns of it.
asio::awaitable<void> watch_for_leaving(std::shared_ptr<Connection> connection,
                                        std::shared_ptr<Feed> feed) {
  std::array<char, 512> waste{};
  error_code error;
  while (!error) {
    co_await connection->stream->read_some(asio::buffer(waste), error);
  }
  feed->gone = true;
  feed->wake.cancel();
}

asio::awaitable<void> send_events(std::shared_ptr<ServerState> state,
                                  std::shared_ptr<Connection> connection,
                                  std::vector<std::string> topics, std::unique_ptr<Place> place) {
  const std::unique_ptr<Place> held = std::move(place);
  const asio::any_io_executor executor = connection->stream->executor();
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
  connection->stream->expires_never();
  asio::co_spawn(executor, watch_for_leaving(connection, feed), asio::detached);

  std::string text = "HTTP/1.1 200 OK\r\nServer: pacelined/" + state->settings.version +
                     "\r\nContent-Type: text/event-stream\r\nCache-Control: no-store\r\n"
                     "X-Content-Type-Options: nosniff\r\nConnection: close\r\n\r\n: welcome\n\n";
  bool last = false;
  for (;;) {
    error_code error;
    const std::size_t events = feed->queue.size();
    text += feed->queue.take();
    if (!text.empty()) {
      connection->stream->expires_after(milliseconds(state->settings.idle_ms));
      // NOLINTNEXTLINE(bugprone-use-after-move): the frame's end is taken for a use of `topics`
      co_await connection->stream->write(text, error);
      text.clear();
      if (!error) state->counts.events += events;
    }
    if (error || feed->gone || connection->closing || last) break;
    last = feed->queue.overflowed();
    if (last && feed->queue.empty()) break;
    if (!feed->queue.empty()) continue;
    feed->wake.expires_after(milliseconds(state->settings.keep_alive_ms));
    co_await feed->wake.async_wait(asio::redirect_error(asio::use_awaitable, error));
    if (!error) text = ": still here\n\n";
  }
  if (feed->queue.overflowed()) ++state->counts.slow_listeners;
}

// One request and its reply. False: the last of this connection.
asio::awaitable<bool> serve_one(std::shared_ptr<ServerState> state,
                                std::shared_ptr<Connection> connection, Membership& membership) {
  Parser parser;
  parser.header_limit(state->settings.most_header);
  parser.body_limit(state->settings.most_body);
  connection->stream->expires_after(milliseconds(state->settings.idle_ms));
  error_code error;
  co_await read_into(*connection, parser, true, error);
  if (!error && !parser.is_done()) {
    if (beast::iequals(parser.get()[http::field::expect], "100-continue")) {
      static constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
      co_await connection->stream->write(kContinue, error);
    }
    if (!error) co_await read_into(*connection, parser, false, error);
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
      co_await send_events(state, connection, std::move(out.topics), std::move(out.listener));
      co_await say_farewell(*connection, false);
      co_return false;
    }
  }
  // Nobody tries a second token on one connection.
  keep = keep && !state->stopped && !out.challenge && connection->may_read;
  const std::string response = response_of(out, *state, keep, head);
  count(*state, out.reply.status);
  connection->stream->expires_after(milliseconds(state->settings.idle_ms));
  error_code unsent;
  co_await connection->stream->write(response, unsent);
  if (!unsent && !keep) co_await say_farewell(*connection, static_cast<bool>(error));
  membership.set_busy(false);
  co_return !unsent && keep && !state->stopped && !connection->closing;
}

asio::awaitable<void> serve(std::shared_ptr<ServerState> state,
                            std::shared_ptr<Connection> connection) {
  try {
    Membership membership(state, connection);
    error_code error;
    co_await connection->stream->open(error);
    if (error) co_return;
    bool more = !state->stopped;
    while (more) more = co_await serve_one(state, connection, membership);
    connection->close();
  } catch (const std::exception& error) {
    spdlog::error("a client of the API is dropped: {}", error.what());
  }
}

// Takes a place for the connection. nullptr: none was free, and the connection has been refused.
std::unique_ptr<Place> place_of(ServerState& state, Connection& connection) {
  auto place = std::make_unique<Place>(state.local_callers,
                                       connection.caller.value_or(Caller{"a stranger", false}));
  const std::string wrong = place->take();
  if (wrong.empty()) return place;
  ++state.counts.turned_away;
  turn_away(connection.stream->descriptor(), wrong);
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
  auto connection = std::make_shared<Connection>(local_stream(std::move(socket), state->aside));
  connection->caller = local_caller(connection->stream->descriptor(), state->access);
  connection->may_read = connection->caller.has_value();
  if (const auto place = place_of(*state, *connection)) co_await serve(state, connection);
}

asio::awaitable<void> serve_metrics(std::shared_ptr<ServerState> state,
                                    asio::ip::tcp::socket socket) {
  auto connection = std::make_shared<Connection>(tcp_stream(std::move(socket)));
  connection->caller = Caller{"metrics", false};
  connection->metrics_only = true;
  if (const auto place = place_of(*state, *connection)) co_await serve(state, connection);
}

asio::awaitable<void> serve_tls(std::shared_ptr<ServerState> state, asio::ip::tcp::socket socket,
                                std::shared_ptr<asio::ssl::context> tls) {
  co_await serve(state, std::make_shared<Connection>(tls_stream(std::move(socket), *tls)));
}

}  // namespace paceline::daemon
