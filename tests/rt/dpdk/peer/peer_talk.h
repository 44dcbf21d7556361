// How a peer process speaks with the test that started it: a line for each fact, "stop" to end it.
#pragma once

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <map>
#include <string>

#include "dataplane/port/dpdk/dpdk_port.h"
#include "tests/rt/support/verified_side.h"

namespace paceline::test {

using Options = std::map<std::string, std::string>;

// "--name value" for each.
inline Options options_of(int count, char** arguments) {
  Options options;
  for (int i = 1; i + 1 < count; i += 2) {
    const std::string name = arguments[i];
    options[name.substr(std::min(name.size(), name.find_first_not_of('-')))] = arguments[i + 1];
  }
  return options;
}

inline unsigned number_of(const Options& options, const char* name, unsigned otherwise) {
  const auto found = options.find(name);
  return found == options.end() ? otherwise : static_cast<unsigned>(std::stoul(found->second));
}

inline void say(const char* name, std::uint64_t value) {
  std::printf("%s %llu\n", name, static_cast<unsigned long long>(value));
}

inline int give_up(const std::string& why) {
  std::fprintf(stderr, "peer: %s\n", why.c_str());
  return 2;
}

// A "stop" or the end of the input within the time?
inline bool told_to_stop(int milliseconds) {
  pollfd in{STDIN_FILENO, POLLIN, 0};
  if (::poll(&in, 1, milliseconds) <= 0) return false;
  char line[64];
  return read(STDIN_FILENO, line, sizeof line) >= 0;
}

// Says "begun" when some messages are over and "done" when all are; returns when told to stop.
inline void attend(
    const VerifiedSide& side, const std::atomic<int>& finished,
    const std::function<void()>& look = [] {}) {
  bool begun = false;
  bool done = false;
  while (!told_to_stop(5)) {
    look();
    if (!begun && side.progress() >= 5) {
      begun = true;
      std::printf("begun\n");
    }
    if (!done && finished.load(std::memory_order_acquire) != 0) {
      done = true;
      std::printf("done\n");
    }
    std::fflush(stdout);
  }
}

inline void say_engine(const transport::Engine& engine) {
  const telemetry::EngineCounters& c = engine.counters();
  say("malformed", telemetry::malformed_total(c));
  say("retransmitted_bytes", c.retransmitted_bytes);
  say("timeouts", c.timeouts);
  say("no_packet", c.no_packet);
  say("host_stops", engine.view().host_stops().count);
}

inline void say_port(DpdkPort& port) {
  const DpdkPortCounters& c = port.counters();
  say("tx_packets", c.tx_packets);
  say("rx_packets", c.rx_packets);
  say("rx_other", c.rx_other);
  say("rx_multi_segment", c.rx_multi_segment);
  say("rx_moved", c.rx_moved);
  say("rx_too_long", c.rx_too_long);
  say("rx_no_packet", c.rx_no_packet);
  say("tx_full", c.tx_full);
  say("held", port.packets().in_use());
  say("link_up", port.device().link_up());
}

inline void say_worker(const Worker& worker) {
  const WatchCounters w = worker.watch().counters();
  say("hiccups", w.hiccups);
  say("stalls", w.stalls);
  say("longest_us", static_cast<std::uint64_t>(w.longest.count / 1'000'000));
  say("sleeps", worker.counters().sleeps);
}

// The last line; the exit code.
inline int conclude(const std::string& verdict, std::size_t held) {
  std::printf("verdict %s\n", verdict.empty() ? "verified" : verdict.c_str());
  std::fflush(stdout);
  return verdict.empty() && held == 0 ? 0 : 1;
}

}  // namespace paceline::test
