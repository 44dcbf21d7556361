// Calls back at a fixed distance of time, as cheaply as an event loop can: a timer of the kernel
// that repeats itself, so that a beat costs a wait and a read, where a timer of Asio is set twice.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>

#include <chrono>
#include <functional>
#include <string>

namespace paceline::daemon {

class PeriodicTimer {
 public:
  explicit PeriodicTimer(boost::asio::io_context& context) : timer_(context) {}

  // The first tick is one period from now. Ticks stay aligned to the first one; ticks that the loop
  // was too busy for are left out. Returns an error, or an empty text.
  std::string start(std::chrono::nanoseconds every, std::function<void()> beat);
  // No beat follows; may be called in one.
  void stop();

 private:
  void await();

  boost::asio::posix::stream_descriptor timer_;
  std::function<void()> beat_;
};

}  // namespace paceline::daemon
