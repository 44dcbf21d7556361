// A client's Unix socket as a stream for Beast that never waits for descriptors of the client
// (dataplane/attach/descriptors/foreign_descriptors.h). If a client sends some, nothing more is
// read from it, and the socket is closed on a side thread, whatever lies unread in it. An operation
// that runs out of time ends the connection, as in Beast's own stream.
#pragma once

#include <sys/socket.h>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/compose.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>

#include "dataplane/attach/descriptors/aside.h"
#include "dataplane/attach/descriptors/foreign_descriptors.h"

namespace paceline::daemon {

class LocalStream {
 public:
  using executor_type = boost::asio::any_io_executor;
  using Socket = boost::asio::local::stream_protocol::socket;

  LocalStream(Socket socket, std::shared_ptr<attach::Aside> aside)
      : core_(std::make_shared<Core>(std::move(socket))), aside_(std::move(aside)) {}
  LocalStream(const LocalStream&) = delete;
  LocalStream& operator=(const LocalStream&) = delete;
  ~LocalStream() {
    boost::system::error_code failed;
    if (socket().is_open()) aside_->close(attach::Descriptor(socket().release(failed)));
  }

  executor_type get_executor() { return socket().get_executor(); }
  Socket& socket() { return core_->socket; }
  // For operations that begin from now on.
  void expires_after(std::chrono::milliseconds span) {
    core_->due.expires_after(span);
    core_->limited = true;
  }
  void expires_never() { core_->limited = false; }
  // All pending operations return; the descriptor is closed with the stream.
  void close() { core_->end(); }

  template <class Buffers, class Token>
  auto async_read_some(const Buffers& buffers, Token&& token) {
    std::array<iovec, 1> part{};
    gather(buffers, part);
    return transfer(
        Socket::wait_read, core_->reading,
        [part = part[0]](int fd) {
          return attach::receive_plain(fd, {static_cast<std::byte*>(part.iov_base), part.iov_len});
        },
        std::forward<Token>(token));
  }

  template <class Buffers, class Token>
  auto async_write_some(const Buffers& buffers, Token&& token) {
    std::array<iovec, 16> parts{};
    const std::size_t count = gather(buffers, parts);
    return transfer(
        Socket::wait_write, core_->writing,
        [parts, count](int fd) mutable {
          msghdr message{};
          message.msg_iov = parts.data();
          message.msg_iovlen = count;
          return ::sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
        },
        std::forward<Token>(token));
  }

 private:
  using Timer = boost::asio::steady_timer;
  using ErrorCode = boost::system::error_code;

  struct Core {
    explicit Core(Socket from)
        : socket(std::move(from)),
          reading(socket.get_executor()),
          writing(socket.get_executor()),
          due(socket.get_executor()) {}
    void end() {
      if (socket.is_open()) ::shutdown(socket.native_handle(), SHUT_RDWR);
    }
    Socket socket;
    Timer reading;
    Timer writing;
    Timer due;  // never waited for: the time until which operations may take
    bool limited = false;
  };

  // The non-empty pieces, as many as there is room for.
  template <class Buffers, std::size_t kMost>
  static std::size_t gather(const Buffers& buffers, std::array<iovec, kMost>& out) {
    std::size_t count = 0;
    for (auto at = boost::asio::buffer_sequence_begin(buffers);
         at != boost::asio::buffer_sequence_end(buffers) && count < kMost; ++at) {
      const boost::asio::const_buffer piece(*at);
      if (piece.size() != 0) out[count++] = {const_cast<void*>(piece.data()), piece.size()};
    }
    return count;
  }

  // Waits until the socket is ready, then calls `move`, again as long as there is nothing to move.
  template <class Move, class Token>
  auto transfer(Socket::wait_type ready, Timer& timer, Move move, Token&& token) {
    if (core_->limited) {
      timer.expires_at(core_->due.expiry());
      timer.async_wait([core = std::weak_ptr<Core>(core_)](const ErrorCode& error) {
        const std::shared_ptr<Core> there = error ? nullptr : core.lock();
        if (there != nullptr) there->end();
      });
    }
    return boost::asio::async_compose<Token, void(ErrorCode, std::size_t)>(
        [core = core_, ready, &timer, move = std::move(move), begun = false](
            auto& self, const ErrorCode& error = {}) mutable {
          ssize_t moved = -1;
          if (!begun || !error) {
            if (begun) moved = move(core->socket.native_handle());
            const bool again = !begun || (moved < 0 && (errno == EAGAIN || errno == EINTR));
            begun = true;
            if (again) {
              core->socket.async_wait(ready, std::move(self));
              return;
            }
          }
          const int number = errno;
          timer.cancel();
          if (error) {
            self.complete(error, 0);
          } else if (moved < 0) {
            self.complete(ErrorCode(number, boost::system::system_category()), 0);
          } else if (moved == 0 && ready == Socket::wait_read) {
            self.complete(boost::asio::error::eof, 0);
          } else {
            self.complete({}, static_cast<std::size_t>(moved));
          }
        },
        token, core_->socket);
  }

  std::shared_ptr<Core> core_;
  std::shared_ptr<attach::Aside> aside_;
};

}  // namespace paceline::daemon
