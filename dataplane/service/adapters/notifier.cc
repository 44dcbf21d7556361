#include "dataplane/service/adapters/notifier.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>

namespace paceline::service {

bool Pipe::make() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return false;
  reading.reset(ends[0]);
  writing.reset(ends[1]);
  // Each end has status flags of its own: what a program does to its end does not reach ours.
  return ::fcntl(writing.get(), F_SETFL, O_NONBLOCK) == 0;
}

bool write_event(int pipe, const attach::ChannelEvent& event) {
  return ::write(pipe, &event, sizeof(event)) == static_cast<ssize_t>(sizeof(event));
}

bool write_notice(int pipe, const attach::AsyncNotice& notice) {
  return ::write(pipe, &notice, sizeof(notice)) == static_cast<ssize_t>(sizeof(notice));
}

}  // namespace paceline::service
