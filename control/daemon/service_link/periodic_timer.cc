#include "control/daemon/service_link/periodic_timer.h"

#include <fmt/format.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <utility>

namespace paceline::daemon {

std::string PeriodicTimer::start(std::chrono::nanoseconds every, std::function<void()> beat) {
  stop();
  const int fd = ::timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
  if (fd < 0) return fmt::format("no timer: {}", std::strerror(errno));
  timer_.assign(fd);
  itimerspec times{};
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(every);
  times.it_interval.tv_sec = seconds.count();
  times.it_interval.tv_nsec = (every - seconds).count();
  times.it_value = times.it_interval;
  if (::timerfd_settime(fd, 0, &times, nullptr) != 0) {
    const int error = errno;
    stop();
    return fmt::format("no timer: {}", std::strerror(error));
  }
  beat_ = std::move(beat);
  await();
  return {};
}

void PeriodicTimer::stop() {
  boost::system::error_code ignored;
  if (timer_.is_open()) timer_.close(ignored);
}

void PeriodicTimer::await() {
  timer_.async_wait(boost::asio::posix::stream_descriptor::wait_read,
                    [this](const boost::system::error_code& error) {
                      if (error || !timer_.is_open()) return;
                      std::uint64_t beats = 0;
                      // Begins the next distance, too; nothing to read: it was stopped and started.
                      if (::read(timer_.native_handle(), &beats, sizeof(beats)) > 0) beat_();
                      if (timer_.is_open()) await();
                    });
}

}  // namespace paceline::daemon
