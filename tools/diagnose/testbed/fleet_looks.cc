#include "tools/diagnose/testbed/fleet_looks.h"

#include <algorithm>
#include <utility>

namespace paceline::tools {

namespace {

using std::chrono::milliseconds;

constexpr milliseconds kFirstPatience{10'000};
constexpr milliseconds kUsualPatience{2'000};
constexpr milliseconds kLeastPatience{50};

}  // namespace

std::vector<SightedHost> FleetLooks::take(double window_seconds) {
  const milliseconds window{static_cast<milliseconds::rep>(window_seconds * 1e3)};
  std::vector<FleetLines::Request> requests(silent_.size());
  for (std::size_t i = 0; i < requests.size(); ++i) {
    const milliseconds usual = begun_ ? kUsualPatience : kFirstPatience;
    requests[i] = {
        "GET", "/v1/look", {}, silent_[i] ? std::clamp(window / 2, kLeastPatience, usual) : usual};
  }
  begun_ = true;
  const std::vector<daemon::Answer> answers = lines_.ask(std::move(requests));
  std::vector<SightedHost> out(answers.size());
  for (std::size_t i = 0; i < answers.size(); ++i) {
    out[i].error = answers[i].complaint();
    if (out[i].error.empty()) out[i].error = looks::read_look(answers[i].body, out[i].host);
    silent_[i] = !out[i].error.empty();
  }
  return out;
}

}  // namespace paceline::tools
