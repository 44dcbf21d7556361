#include "control/daemon/api/stream/byte_stream.h"

#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/ssl.hpp>

#include <array>
#include <type_traits>
#include <utility>

#include "control/daemon/api/stream/local_stream.h"

namespace paceline::daemon {

namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
using boost::system::error_code;

using TlsStream = beast::ssl_stream<beast::tcp_stream>;

constexpr std::chrono::milliseconds kHandshake{10'000};

auto into(error_code& error) { return asio::redirect_error(asio::use_awaitable, error); }

template <class Stream>
class StreamOf final : public ByteStream {
 public:
  template <class... Parts>
  explicit StreamOf(Parts&&... parts) : stream_(std::forward<Parts>(parts)...) {}

  asio::awaitable<void> open(ErrorCode& error) override {
    error = {};
    if constexpr (std::is_same_v<Stream, TlsStream>) {
      lowest().expires_after(kHandshake);
      co_await stream_.async_handshake(asio::ssl::stream_base::server, into(error));
    }
    co_return;
  }
  asio::awaitable<std::size_t> read_some(asio::mutable_buffer buffer, ErrorCode& error) override {
    co_return co_await stream_.async_read_some(buffer, into(error));
  }
  asio::awaitable<void> write(std::string_view text, ErrorCode& error) override {
    co_await asio::async_write(stream_, asio::buffer(text.data(), text.size()), into(error));
  }
  asio::awaitable<void> end_writing() override {
    error_code error;
    if constexpr (std::is_same_v<Stream, TlsStream>) {
      co_await stream_.async_shutdown(into(error));
    }
    lowest().socket().shutdown(asio::socket_base::shutdown_send, error);
    co_return;
  }
  asio::awaitable<std::size_t> discard_some(ErrorCode& error) override {
    std::array<char, 16384> waste{};
    co_return co_await lowest().async_read_some(asio::buffer(waste), into(error));
  }

  void expires_after(std::chrono::milliseconds span) override { lowest().expires_after(span); }
  void expires_never() override { lowest().expires_never(); }
  void close() override { lowest().close(); }
  asio::any_io_executor executor() override { return stream_.get_executor(); }
  int descriptor() override { return lowest().socket().native_handle(); }

 private:
  auto& lowest() { return beast::get_lowest_layer(stream_); }

  Stream stream_;
};

}  // namespace

std::unique_ptr<ByteStream> local_stream(asio::local::stream_protocol::socket socket,
                                         std::shared_ptr<attach::Aside> aside) {
  return std::make_unique<StreamOf<LocalStream>>(std::move(socket), std::move(aside));
}

std::unique_ptr<ByteStream> tcp_stream(asio::ip::tcp::socket socket) {
  return std::make_unique<StreamOf<beast::tcp_stream>>(std::move(socket));
}

std::unique_ptr<ByteStream> tls_stream(asio::ip::tcp::socket socket, asio::ssl::context& tls) {
  return std::make_unique<StreamOf<TlsStream>>(std::move(socket), tls);
}

}  // namespace paceline::daemon
