// Requests and answers of the API's clients as HTTP; internal to this room.
#pragma once

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/beast/http.hpp>

#include <string>
#include <string_view>

#include "control/daemon/api/client/client.h"

namespace paceline::daemon {

using RequestMessage = boost::beast::http::request<boost::beast::http::string_body>;
using AnswerParser = boost::beast::http::response_parser<boost::beast::http::string_body>;

inline auto reporting(boost::system::error_code& error) {
  return boost::asio::redirect_error(boost::asio::use_awaitable, error);
}

// A null body means none.
RequestMessage message_of(std::string_view host, std::string_view method, std::string_view target,
                          const Json& body);
// How much may come.
void limit_answer(AnswerParser& parser);
// Not empty: the reply is not a daemon's. `where`: who replied.
std::string take_answer(const std::string& where, AnswerParser& parser, Answer& answer);

// A discarded value if the text is not valid JSON.
Json parsed(std::string_view text);
// The errors of a refusal, a line each.
std::string errors_in(const Json& body);
// A sentence.
std::string why_unanswered(const std::string& where, const boost::system::error_code& error);

}  // namespace paceline::daemon
