#include "tools/fleet/fleet_lines.h"

#include <boost/asio/co_spawn.hpp>

#include <exception>
#include <utility>

#include "tools/cli/cli.h"

namespace paceline::tools {

namespace {

constexpr auto kGlance = std::chrono::milliseconds(20);  // between two looks for Ctrl-C

}  // namespace

FleetLines::FleetLines(const std::vector<FleetHost>& hosts) {
  for (const FleetHost& host : hosts) {
    lines_.push_back(std::make_unique<daemon::DaemonLine>(context_, host.daemon));
  }
}

std::vector<daemon::Answer> FleetLines::ask(std::vector<Request> requests) {
  const bool interrupted_before = Interrupt::flag();
  // Answers that come after an interruption find it still there.
  const auto answers = std::make_shared<std::vector<daemon::Answer>>(lines_.size());
  const auto missing = std::make_shared<std::size_t>(0);
  for (std::size_t i = 0; i < lines_.size(); ++i) {
    Request& request = requests[i];
    if (request.method.empty()) continue;
    (*answers)[i].error = "interrupted";
    if (lost_) continue;
    ++*missing;
    boost::asio::co_spawn(
        context_,
        lines_[i]->ask(std::move(request.method), std::move(request.target),
                       std::move(request.body), request.patience),
        [answers, missing, i](const std::exception_ptr& thrown, daemon::Answer answer) {
          if (thrown) answer.error = "the request failed";
          (*answers)[i] = std::move(answer);
          --*missing;
        });
  }
  context_.restart();
  while (*missing != 0 && (interrupted_before || !Interrupt::flag())) context_.run_for(kGlance);
  if (*missing != 0) {
    for (const auto& line : lines_) line->close();
    context_.run_for(kGlance);
    lost_ = *missing != 0;
  }
  return *answers;
}

}  // namespace paceline::tools
