#include "control/daemon/process/systemd.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <systemd/sd-daemon.h>

namespace paceline::daemon {

Systemd::Systemd() {
  descriptors_ = sd_listen_fds(1);
  if (sd_watchdog_enabled(1, &watchdog_us_) <= 0) watchdog_us_ = 0;
}

int Systemd::take_api_socket(std::string& error) {
  if (descriptors_ <= 0) return -1;
  if (descriptors_ > 1) {
    error = fmt::format("systemd hands over {} sockets; one is expected, that of the API",
                        descriptors_);
    return -1;
  }
  const int fd = SD_LISTEN_FDS_START;
  if (sd_is_socket_unix(fd, SOCK_STREAM, 1, nullptr, 0) <= 0) {
    error = "the socket that systemd passes is not a listening Unix stream socket";
    return -1;
  }
  descriptors_ = 0;
  return fd;
}

void Systemd::notify(const std::string& text) const { sd_notify(0, text.c_str()); }

void Systemd::ready(const std::string& status) const {
  notify(fmt::format("READY=1\nSTATUS={}", status));
}

void Systemd::reloading(std::int64_t monotonic_ns) const {
  notify(fmt::format("RELOADING=1\nMONOTONIC_USEC={}", monotonic_ns / 1000));
}

void Systemd::stopping() const { notify("STOPPING=1"); }

void Systemd::alive() const { notify("WATCHDOG=1"); }

}  // namespace paceline::daemon
