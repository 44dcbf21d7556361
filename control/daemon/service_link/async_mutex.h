// A mutex for the coroutines of one thread. Those that wait get it in the order in which they came.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>

#include <deque>
#include <memory>

namespace paceline::daemon {

class AsyncMutex {
 public:
  explicit AsyncMutex(boost::asio::io_context& context) : context_(context) {}

  // Once this has returned, the caller makes a Hold.
  boost::asio::awaitable<void> enter() {
    if (!taken_) {
      taken_ = true;
      co_return;
    }
    auto timer = std::make_shared<boost::asio::steady_timer>(
        context_, boost::asio::steady_timer::time_point::max());
    waiting_.push_back(timer);
    boost::system::error_code woken;
    co_await timer->async_wait(boost::asio::redirect_error(boost::asio::use_awaitable, woken));
  }

  // Leaves at the end of its scope, however that is reached.
  class Hold {
   public:
    explicit Hold(AsyncMutex& of) : of_(of) {}
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;
    ~Hold() { of_.leave(); }

   private:
    AsyncMutex& of_;
  };

  bool taken() const { return taken_; }

 private:
  // It passes to the next coroutine without being free in between.
  void leave() {
    if (waiting_.empty()) {
      taken_ = false;
      return;
    }
    const std::shared_ptr<boost::asio::steady_timer> next = waiting_.front();
    waiting_.pop_front();
    next->cancel();
  }

  boost::asio::io_context& context_;
  std::deque<std::shared_ptr<boost::asio::steady_timer>> waiting_;
  bool taken_ = false;
};

}  // namespace paceline::daemon
