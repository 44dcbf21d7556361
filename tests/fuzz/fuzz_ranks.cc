// Whatever arrives on the connections between ranks: frames come out, or an error and nothing after
// it; what is read can be written to the same bytes. The first byte says how the rest is cut, the
// second who sends.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include "tools/task/ranks/frames.h"
#include "tools/task/ranks/meeting_point.h"

namespace {

using namespace paceline::tools;

void require_that(bool holds) {
  if (!holds) std::abort();
}

template <class T>
void same_again(const std::optional<T>& value, std::string_view payload) {
  if (value) require_that(std::string_view(to_frame(*value)).substr(kFrameHead) == payload);
}

void look_at(const Frame& frame) {
  const std::string_view payload = frame.payload;
  switch (frame.kind) {
    case FrameKind::challenge:
      return same_again(to_challenge(payload), payload);
    case FrameKind::hello:
      return same_again(to_hello(payload), payload);
    case FrameKind::welcome:
      return same_again(to_welcome(payload), payload);
    case FrameKind::ready:
      return same_again(to_ready(payload), payload);
    case FrameKind::tasks:
      return same_again(to_task_numbers(payload), payload);
    case FrameKind::records: {
      const auto done = to_done_tasks(payload);
      if (!done || done->tasks.empty()) return;
      for (const DoneTask& task : done->tasks) {
        require_that(!task.text.empty() && task.seconds >= 0 && task.cpu_seconds >= 0);
      }
      const std::string again = to_frames(*done);
      if (payload.size() < 100'000) {
        require_that(std::string_view(again).substr(kFrameHead) == payload);
      }
      return;
    }
    case FrameKind::finish:
      return same_again(to_finish(payload), payload);
    case FrameKind::stop:
      return same_again(to_stop(payload), payload);
  }
  std::abort();  // a kind that the reader should have refused
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  std::string_view rest(reinterpret_cast<const char*>(data) + 2, size - 2);
  const auto meeting = parse_meeting_point(rest);
  if (meeting.ok()) require_that(parse_meeting_point(meeting.value.to_text()).ok());
  FrameReader reader(data[1] % 2 == 0 ? kMostStrangerFrame : kMostFrame);
  const std::size_t cut = 1 + data[0];
  bool failed = false;
  while (!rest.empty()) {
    reader.append(rest.substr(0, cut));
    rest.remove_prefix(std::min(cut, rest.size()));
    while (const auto frame = reader.next()) {
      require_that(!failed);
      look_at(*frame);
    }
    failed = !reader.error().empty();
  }
  return 0;
}
