// One end of a verified conversation between two hosts, as a testbed file has them: a port with
// addresses of its own in front of a device. Nobody is told anybody's MAC address. Speaks
// as port_peer does (devices_test.py runs two).
//
// exit: 0 verified, 1 not, 2 could not start (standard error says why)
#include <stdexcept>
#include <thread>

#include "dataplane/config/testbed/testbed_reader.h"
#include "dataplane/driver/ports/dpdk_testbed.h"
#include "tests/rt/dpdk/peer/peer_talk.h"

namespace paceline::test {
namespace {

int run(const Options& options) {
  const auto read = config::read_testbed_file(options.at("testbed"));
  if (!read.ok()) return give_up(read.errors.front());
  const DpdkTestbedOpened opened = DpdkTestbed::open(read.value);
  if (opened.testbed == nullptr) return give_up(opened.error);
  for (const std::string& line : opened.testbed->report()) std::printf("note %s\n", line.c_str());
  TestbedPort& port = opened.testbed->ports().at(0);
  Worker worker({.idle = {.how = options.count("idle") != 0 ? Idle::sleep : Idle::yield}});
  if (port.resolver == nullptr) return give_up("the port is no host");

  std::atomic<int> finished{0};
  std::atomic<bool> stop{false};
  std::string verdict;
  {
    const SideConfig config{number_of(options, "index", 0),
                            cc::AlgorithmId::fixed,
                            {},
                            number_of(options, "ipv6", 0) != 0};
    VerifiedSide side(config, port.front(0), finished);
    if (!side.connect(side.expected_peer({}))) return give_up("the queue pair does not connect");
    worker.add({&side.engine(), &port.front(0), &side, port.resolver.get()});
    say("path_mtu", port.front(0).info().mtu_bytes);
    std::printf("ready\n");
    std::fflush(stdout);
    const TscClock clock = TscClock::calibrated();
    std::thread thread([&] {
      const LcoreRegistration known;
      worker.run(clock, stop);
    });
    attend(side, finished, [] {});
    stop.store(true, std::memory_order_release);
    thread.join();
    verdict = side.verdict();
    say_engine(side.engine());
  }
  say_worker(worker);
  const neighbour::ResolvingPort& resolver = *port.resolver;
  if (verdict.empty()) verdict = resolver.check_conservation();
  say("parked", resolver.counters().tx_parked);
  say("answered", resolver.counters().rx_answered);
  say("arp_requests", resolver.host().counters().arp_requests);
  say("arp_answers", resolver.host().counters().arp_answers);
  say("nd_solicitations", resolver.host().counters().nd_solicitations);
  say("nd_answers", resolver.host().counters().nd_answers);
  say("other_vlan", resolver.host().counters().other_vlan);
  say("untagged", resolver.host().counters().untagged);
  say("dropped", resolver.counters().tx_dropped());
  port.resolver.reset();  // what it holds goes home
  say_port(*port.ports[0]);
  return conclude(verdict, port.ports[0]->packets().in_use());
}

}  // namespace
}  // namespace paceline::test

int main(int count, char** arguments) {
  const paceline::test::Options options = paceline::test::options_of(count, arguments);
  if (options.count("testbed") == 0) {
    return paceline::test::give_up(
        "usage: host_peer --testbed FILE [--index 0|1] [--ipv6 1] [--idle sleep]");
  }
  try {
    return paceline::test::run(options);
  } catch (const std::exception& error) {
    return paceline::test::give_up(error.what());
  }
}
