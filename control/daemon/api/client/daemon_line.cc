#include "control/daemon/api/client/daemon_line.h"

#include <openssl/ssl.h>

#include <boost/asio/connect.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/ssl.hpp>

#include <optional>
#include <type_traits>
#include <utility>

#include "control/daemon/api/client/messages.h"

namespace paceline::daemon {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using boost::system::error_code;

class DaemonLine::Wire {
 public:
  Wire() = default;
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;
  virtual ~Wire() = default;

  virtual asio::awaitable<error_code> open(const DaemonPlace& place,
                                           const std::vector<asio::ip::tcp::endpoint>& at) = 0;
  virtual asio::awaitable<error_code> exchange(const RequestMessage& request,
                                               AnswerParser& parser) = 0;
  // Applies to operations that begin from now on.
  virtual void expires_after(std::chrono::milliseconds patience) = 0;
  virtual void close() = 0;

  bool used = false;  // a request was answered on it
};

namespace {

using UnixWireStream = beast::basic_stream<asio::local::stream_protocol>;
using TlsWireStream = beast::ssl_stream<beast::tcp_stream>;

template <class Stream>
class WireOf final : public DaemonLine::Wire {
 public:
  template <class... Parts>
  explicit WireOf(Parts&&... parts) : stream_(std::forward<Parts>(parts)...) {}

  asio::awaitable<error_code> open(const DaemonPlace& place,
                                   const std::vector<asio::ip::tcp::endpoint>& at) override {
    error_code error;
    if constexpr (std::is_same_v<Stream, UnixWireStream>) {
      const asio::local::stream_protocol::endpoint endpoint(place.path);
      co_await stream_.async_connect(endpoint, reporting(error));
    } else {
      co_await lowest().async_connect(at, reporting(error));
    }
    if constexpr (std::is_same_v<Stream, TlsWireStream>) {
      if (error) co_return error;
      // SNI carries names only: the server is not told an address.
      error_code no_address;
      asio::ip::make_address(place.host, no_address);
      if (no_address) ::SSL_set_tlsext_host_name(stream_.native_handle(), place.host.c_str());
      stream_.set_verify_callback(asio::ssl::host_name_verification(place.host));
      co_await stream_.async_handshake(asio::ssl::stream_base::client, reporting(error));
    }
    co_return error;
  }

  asio::awaitable<error_code> exchange(const RequestMessage& request,
                                       AnswerParser& parser) override {
    error_code error;
    // A refusal may come before the body is sent: read it even if writing fails.
    error_code unsent;
    co_await http::async_write(stream_, request, reporting(unsent));
    co_await http::async_read(stream_, buffer_, parser, reporting(error));
    co_return error;
  }

  void expires_after(std::chrono::milliseconds patience) override {
    lowest().expires_after(patience);
  }
  void close() override { lowest().close(); }

 private:
  auto& lowest() { return beast::get_lowest_layer(stream_); }

  Stream stream_;
  beast::flat_buffer buffer_;
};

// Checks certificates by `ca`, or by what the system trusts. Returns an error, or an empty text.
std::string set_up_trust(const std::string& ca, asio::ssl::context& context) {
  ::SSL_CTX_set_min_proto_version(context.native_handle(), TLS1_2_VERSION);
  context.set_verify_mode(asio::ssl::verify_peer);
  error_code error;
  if (ca.empty()) {
    context.set_default_verify_paths(error);
    return error ? "what this system trusts cannot be read: " + error.message() : std::string{};
  }
  context.load_verify_file(ca, error);
  return error ? ca + ": no certificates in PEM: " + error.message() : std::string{};
}

std::string why_no_connection(const DaemonPlace& place, const error_code& error) {
  if (error.category() == asio::error::get_ssl_category()) {
    return place.url + ": TLS failed: " + error.message() +
           "; a certificate must be for that host and signed by what \"ca\" has";
  }
  if (error == asio::error::connection_refused ||
      error == boost::system::errc::no_such_file_or_directory) {
    const bool local = place.kind == DaemonPlace::Kind::local;
    return place.url + ": no daemon answers there (" +
           (local ? "api.socket" : "api.address and api.port") + " of its configuration)";
  }
  if (error == beast::error::timeout) return place.url + ": no connection in time";
  return why_unanswered(place.url, error);
}

}  // namespace

DaemonLine::DaemonLine(asio::io_context& context, const DaemonPlace& place)
    : context_(context), place_(place) {}

DaemonLine::~DaemonLine() = default;

void DaemonLine::close() {
  if (wire_) wire_->close();
}

asio::awaitable<std::string> DaemonLine::look_up() {
  if (place_.kind == DaemonPlace::Kind::local || !addresses_.empty()) co_return std::string{};
  asio::ip::tcp::resolver resolver(context_);
  error_code error;
  const std::string port = std::to_string(place_.port);
  const auto found = co_await resolver.async_resolve(place_.host, port, reporting(error));
  if (error) co_return place_.url + ": there is no host of that name: " + error.message();
  for (const auto& one : found) addresses_.push_back(one.endpoint());
  co_return std::string{};
}

asio::awaitable<std::string> DaemonLine::connect(std::chrono::milliseconds patience) {
  std::string wrong = co_await look_up();
  if (!wrong.empty()) co_return wrong;
  if (place_.kind == DaemonPlace::Kind::local) {
    wire_ = std::make_unique<WireOf<UnixWireStream>>(context_);
  } else if (place_.kind == DaemonPlace::Kind::plain) {
    wire_ = std::make_unique<WireOf<beast::tcp_stream>>(context_);
  } else {
    asio::ssl::context tls(asio::ssl::context::tls_client);
    wrong = set_up_trust(place_.ca, tls);
    if (!wrong.empty()) co_return place_.url + ": " + wrong;
    wire_ = std::make_unique<WireOf<TlsWireStream>>(context_, tls);
  }
  wire_->expires_after(patience);
  const error_code error = co_await wire_->open(place_, addresses_);
  if (error) {
    wire_.reset();
    co_return why_no_connection(place_, error);
  }
  co_return std::string{};
}

asio::awaitable<Answer> DaemonLine::ask(std::string method, std::string target, Json body,
                                        std::chrono::milliseconds patience) {
  Answer answer;
  const std::string host = place_.host.empty() ? "localhost" : place_.host;
  RequestMessage request = message_of(host, method, target, body);
  if (!place_.token.empty()) request.set(http::field::authorization, "Bearer " + place_.token);
  for (int tries = 0; tries < 2; ++tries) {
    if (!wire_) answer.error = co_await connect(patience);
    if (!answer.error.empty()) co_return answer;
    AnswerParser parser;
    limit_answer(parser);
    wire_->expires_after(patience);
    const error_code error = co_await wire_->exchange(request, parser);
    if (!error) {
      answer.error = take_answer(place_.url, parser, answer);
      wire_->used = true;
      if (!parser.keep_alive() || !answer.error.empty()) wire_.reset();
      co_return answer;
    }
    const bool idle_too_long =
        wire_->used && error != beast::error::timeout && error != asio::error::operation_aborted;
    wire_.reset();
    if (!idle_too_long || tries == 1) {
      answer.error = why_unanswered(place_.url, error);
      co_return answer;
    }
  }
  co_return answer;
}

}  // namespace paceline::daemon
