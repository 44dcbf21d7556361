// The bytes of one connection, whatever its transport: a Unix socket, TCP, or TLS over TCP. HTTP
// above it is compiled once.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/ssl/context.hpp>

#include <chrono>
#include <cstddef>
#include <memory>
#include <string_view>

#include "dataplane/attach/descriptors/aside.h"

namespace paceline::daemon {

// One reader and one writer at a time. Operations report failure in `error` and throw nothing. An
// operation that takes longer than expires_after() allowed fails, and so do all that follow.
class ByteStream {
 public:
  using ErrorCode = boost::system::error_code;

  ByteStream() = default;
  ByteStream(const ByteStream&) = delete;
  ByteStream& operator=(const ByteStream&) = delete;
  virtual ~ByteStream() = default;

  // Call it before anything else.
  virtual boost::asio::awaitable<void> open(ErrorCode& error) = 0;
  // At least one byte, or an error; the end of the stream is one.
  virtual boost::asio::awaitable<std::size_t> read_some(boost::asio::mutable_buffer into,
                                                        ErrorCode& error) = 0;
  // Writes all of `text`, which must stay valid until then.
  virtual boost::asio::awaitable<void> write(std::string_view text, ErrorCode& error) = 0;
  // The peer learns that nothing more comes.
  virtual boost::asio::awaitable<void> end_writing() = 0;
  // Reads and forgets what came, below TLS: after end_writing().
  virtual boost::asio::awaitable<std::size_t> discard_some(ErrorCode& error) = 0;

  // Applies to operations that begin from now on.
  virtual void expires_after(std::chrono::milliseconds span) = 0;
  virtual void expires_never() = 0;
  // All pending operations fail.
  virtual void close() = 0;
  virtual boost::asio::any_io_executor executor() = 0;
  virtual int descriptor() = 0;
};

// aside: closes the socket (dataplane/attach/descriptors/aside.h).
std::unique_ptr<ByteStream> local_stream(boost::asio::local::stream_protocol::socket socket,
                                         std::shared_ptr<attach::Aside> aside);
std::unique_ptr<ByteStream> tcp_stream(boost::asio::ip::tcp::socket socket);
// An SSL object keeps what it needs from the context.
std::unique_ptr<ByteStream> tls_stream(boost::asio::ip::tcp::socket socket,
                                       boost::asio::ssl::context& tls);

}  // namespace paceline::daemon
