#include "control/daemon/api/client/messages.h"

#include <boost/asio/error.hpp>
#include <boost/asio/ssl/error.hpp>
#include <boost/beast/core.hpp>

#include <utility>

#include "dataplane/base/text/json_limits.h"

namespace paceline::daemon {

namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;

constexpr std::uint64_t kMostAnswer = 64 << 20;

}  // namespace

RequestMessage message_of(std::string_view host, std::string_view method, std::string_view target,
                          const Json& body) {
  RequestMessage message;
  message.version(11);
  message.method_string(beast::string_view(method.data(), method.size()));
  message.target(beast::string_view(target.data(), target.size()));
  message.set(http::field::host, beast::string_view(host.data(), host.size()));
  message.set(http::field::user_agent, "paceline");
  if (!body.is_null()) {
    message.set(http::field::content_type, "application/json");
    message.body() = body.dump(-1, ' ', false, Json::error_handler_t::replace);
  }
  message.prepare_payload();
  return message;
}

void limit_answer(AnswerParser& parser) {
  parser.body_limit(kMostAnswer);
  parser.header_limit(64 << 10);
}

std::string take_answer(const std::string& where, AnswerParser& parser, Answer& answer) {
  answer.status = parser.get().result_int();
  answer.text = std::move(parser.get().body());
  const bool is_json = beast::iequals(parser.get()[http::field::content_type], "application/json");
  if (!is_json || answer.text.empty()) return {};
  answer.body = parsed(answer.text);
  if (!answer.body.is_discarded()) return {};
  answer.body = nullptr;
  return where + ": what answers there is not a daemon: its JSON is broken";
}

Json parsed(std::string_view text) {
  if (json_excess(text)) return Json(Json::value_t::discarded);
  return Json::parse(text, nullptr, false);
}

std::string errors_in(const Json& body) {
  std::string lines;
  if (!body.is_object() || !body.contains("errors") || !body["errors"].is_array()) return lines;
  for (const Json& error : body["errors"]) {
    if (!error.is_string()) continue;
    if (!lines.empty()) lines += '\n';
    lines += error.get_ref<const std::string&>();
  }
  return lines;
}

std::string why_unanswered(const std::string& where, const boost::system::error_code& error) {
  if (error == asio::error::connection_refused ||
      error == boost::system::errc::no_such_file_or_directory) {
    return where +
           ": no daemon answers there. Name its socket by --daemon, or start one:  "
           "pacelined --config configs/pacelined.toml";
  }
  if (error == boost::system::errc::permission_denied) {
    return where + ": permission denied; allowed: root, the daemon's own user, its group";
  }
  if (error == beast::error::timeout) return where + ": the daemon did not answer in time";
  if (error == http::error::end_of_stream || error == http::error::partial_message ||
      error == boost::system::errc::connection_reset || error == boost::system::errc::broken_pipe ||
      error == asio::error::eof || error == asio::ssl::error::stream_truncated) {
    return where + ": the daemon ended the connection";
  }
  return where + ": what answers there is not a daemon: " + error.message();
}

}  // namespace paceline::daemon
