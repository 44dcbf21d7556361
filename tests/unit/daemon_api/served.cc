#include "tests/unit/daemon_api/served.h"

#include <array>

namespace paceline::test {

net::awaitable<std::string> read_until(LocalSocket& socket, std::string wanted) {
  std::string text;
  std::array<char, 4096> piece{};
  boost::system::error_code error;
  while (!error && (wanted.empty() || text.find(wanted) == std::string::npos)) {
    const std::size_t got = co_await socket.async_read_some(
        net::buffer(piece), net::redirect_error(net::use_awaitable, error));
    text.append(piece.data(), got);
  }
  co_return text;
}

net::awaitable<bool> write_all(LocalSocket& socket, std::string bytes) {
  boost::system::error_code error;
  co_await net::async_write(socket, net::buffer(bytes),
                            net::redirect_error(net::use_awaitable, error));
  co_return !error;
}

net::awaitable<std::string> converse(std::string path, std::string bytes, bool end) {
  const net::any_io_executor executor = co_await net::this_coro::executor;
  LocalSocket socket(executor);
  const net::local::stream_protocol::endpoint endpoint(path);
  boost::system::error_code error;
  socket.connect(endpoint, error);
  if (error) co_return "no connection: " + error.message();
  co_await write_all(socket, std::move(bytes));
  if (end) socket.shutdown(net::socket_base::shutdown_send, error);
  std::string text = co_await read_until(socket, {});
  co_return text;
}

net::awaitable<bool> pause(std::chrono::milliseconds time) {
  net::steady_timer timer(co_await net::this_coro::executor);
  timer.expires_after(time);
  boost::system::error_code error;
  co_await timer.async_wait(net::redirect_error(net::use_awaitable, error));
  co_return !error;
}

}  // namespace paceline::test
