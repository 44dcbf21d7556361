#include "control/daemon/api/client/client.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>

#include <array>
#include <exception>
#include <utility>

#include "control/daemon/api/client/event_parser.h"
#include "control/daemon/api/client/messages.h"

namespace paceline::daemon {

namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using boost::system::error_code;
using ClientStream = beast::basic_stream<asio::local::stream_protocol>;

class Exchange {
 public:
  Exchange(const std::string& path, std::chrono::milliseconds patience)
      : path_(path), patience_(patience), stream_(context_) {}

  // Runs one coroutine to its end; an exception becomes the error.
  std::string run(asio::awaitable<std::string> work) {
    std::string wrong;
    asio::co_spawn(context_, std::move(work),
                   [&](const std::exception_ptr& thrown, std::string result) {
                     wrong = thrown ? path_ + ": the request failed" : std::move(result);
                   });
    context_.run();
    return wrong;
  }

  asio::awaitable<std::string> ask(RequestMessage message, Answer& answer) {
    error_code error = co_await begin(message);
    if (error) co_return why_unanswered(path_, error);
    AnswerParser parser;
    limit_answer(parser);
    parser.skip(message.method() == http::verb::head);
    co_await http::async_read(stream_, buffer_, parser, reporting(error));
    if (error) co_return why_unanswered(path_, error);
    co_return take_answer(path_, parser, answer);
  }

  asio::awaitable<std::string> follow(RequestMessage message, const Client::OnEvent& on_event) {
    error_code error = co_await begin(message);
    if (error) co_return why_unanswered(path_, error);
    http::response_parser<http::buffer_body> parser;
    parser.body_limit(boost::none);
    co_await http::async_read_header(stream_, buffer_, parser, reporting(error));
    if (error) co_return why_unanswered(path_, error);
    const unsigned status = parser.get().result_int();
    stream_.expires_never();
    EventParser events;
    std::string refused;
    std::string ended;
    bool wanted = true;
    const EventParser::OnEvent on_text = [&](std::string_view topic, std::string_view text) {
      const Json data = parsed(text);
      if (data.is_discarded()) return true;
      if (topic == "dropped") {
        ended = path_ + ": events came faster than they were read; the daemon let this listener go";
        return false;
      }
      wanted = on_event(topic, data);
      return wanted;
    };
    std::array<char, 8192> piece{};
    while (!parser.is_done()) {
      parser.get().body().data = piece.data();
      parser.get().body().size = piece.size();
      co_await http::async_read(stream_, buffer_, parser, reporting(error));
      if (error == http::error::need_buffer) error = {};
      const std::string_view got(piece.data(), piece.size() - parser.get().body().size);
      if (status != 200) {
        refused += got;
      } else if (!events.take(got, on_text)) {
        co_return wanted ? (ended.empty() ? path_ + ": an event is too long" : ended)
                         : std::string{};
      }
      if (error) break;
    }
    if (status == 200) co_return path_ + ": the daemon ended the connection";
    std::string lines = errors_in(parsed(refused));
    co_return lines.empty() ? path_ + ": refused, status " + std::to_string(status) : lines;
  }

 private:
  asio::awaitable<error_code> begin(const RequestMessage& message) {
    error_code error;
    if (path_.empty() || path_.size() >= 108) {
      co_return make_error_code(boost::system::errc::no_such_file_or_directory);
    }
    const asio::local::stream_protocol::endpoint endpoint(path_);
    stream_.expires_after(patience_);
    co_await stream_.async_connect(endpoint, reporting(error));
    // A refusal may come before the body is sent: read it even if writing fails.
    error_code unsent;
    if (!error) co_await http::async_write(stream_, message, reporting(unsent));
    co_return error;
  }

  const std::string& path_;
  std::chrono::milliseconds patience_;
  asio::io_context context_;
  ClientStream stream_;
  beast::flat_buffer buffer_;
};

// A request on a connection that closes after the answer.
RequestMessage only_message(std::string_view method, std::string_view target, const Json& body) {
  RequestMessage message = message_of("localhost", method, target, body);
  message.set(http::field::connection, "close");
  return message;
}

}  // namespace

std::string Answer::complaint() const {
  if (!error.empty()) return error;
  if (good()) return {};
  std::string lines = errors_in(body);
  return lines.empty() ? "refused, status " + std::to_string(status) : lines;
}

Answer Client::request(std::string_view method, std::string_view target, const Json& body) const {
  Answer answer;
  Exchange exchange(path_, patience_);
  answer.error = exchange.run(exchange.ask(only_message(method, target, body), answer));
  return answer;
}

std::string Client::listen(std::string_view topics, const OnEvent& on_event) const {
  std::string target = "/v1/events";
  if (!topics.empty()) target += "?topics=" + std::string(topics);
  Exchange exchange(path_, patience_);
  return exchange.run(exchange.follow(only_message("GET", target, nullptr), on_event));
}

}  // namespace paceline::daemon
