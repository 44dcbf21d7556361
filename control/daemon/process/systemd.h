// Notifications to systemd, and sockets from it. Without systemd every call does nothing.
#pragma once

#include <cstdint>
#include <string>

namespace paceline::daemon {

class Systemd {
 public:
  // Takes what concerns sockets and the watchdog out of the environment. (What a child inherits is
  // without all of it: process.h.)
  Systemd();

  // A listening Unix socket from systemd (socket activation); -1: none. Sets `error` if systemd
  // passed something else.
  int take_api_socket(std::string& error);
  // The time within which systemd wants a sign of life; 0: it does not watch.
  std::uint64_t watchdog_us() const { return watchdog_us_; }

  void ready(const std::string& status) const;
  void reloading(std::int64_t monotonic_ns) const;
  void stopping() const;
  void alive() const;

 private:
  void notify(const std::string& text) const;
  int descriptors_ = 0;
  std::uint64_t watchdog_us_ = 0;
};

}  // namespace paceline::daemon
