// Trials with clusters: two arms at a time by the port that data goes to, counted and judged by
// arm.

#include "dataplane/service/congestion/arm_guard.h"
#include "dataplane/service/congestion/congestion_controller.h"
#include "dataplane/telemetry/segment_reader.h"
#include "tests/unit/service/service_support.h"

using namespace paceline;
using namespace paceline::test;

namespace {

service::ControlRequest trial_with(std::vector<std::vector<std::string>> clusters,
                                   const std::string& candidate) {
  service::ControlRequest request;
  request.name = "t";
  request.clusters = std::move(clusters);
  request.change.algorithm = candidate;
  request.hold_ms = 3'600'000;
  return request;
}

service::ControlRequest arms_of(std::vector<std::uint8_t> arms, std::uint8_t epoch) {
  service::ControlRequest request;
  request.name = "t";
  request.arms = std::move(arms);
  request.epoch = epoch;
  return request;
}

struct SegmentWatch {
  explicit SegmentWatch(RunningService& running) {
    REQUIRE(reader.open(running.service().segment()).empty());
  }
  template <class Holds>
  bool comes(std::size_t nic, Holds holds) {
    for (int i = 0; i < 10'000; ++i) {
      if (reader.read(nic, sample) && holds(sample)) return true;
      ::usleep(1000);
    }
    return false;
  }
  telemetry::SegmentReader reader;
  telemetry::NicSample sample;
};

constexpr const char* kThreeHosts = R"(
schema = 1
[fabric]
hosts = 3
rate = "10Gb/s"
delay = "1us"
[cc]
algorithm = "dcqcn"
)";

// Several senders to one sink, each with a connection of its own.
struct Incast {
  Incast(RunningService& running, const std::string& to, const std::vector<std::string>& from)
      : sink(running, to, 1 << 20) {
    for (const std::string& name : from) {
      End& end = *senders.emplace_back(std::make_unique<End>(running, name, 1 << 20));
      REQUIRE(end.pair.create(end.client, end.request()) == 0);
      sink.pair = ClientPair{};
      REQUIRE(sink.pair.create(sink.client, sink.request()) == 0);
      connect(end, sink);
      sinks.push_back(std::make_unique<ClientPair>(std::move(sink.pair)));
    }
  }
  // Each sender has so many WRITEs done.
  void round(int messages, std::uint32_t bytes) {
    for (auto& from : senders) {
      for (int m = 0; m < messages; ++m) {
        attach::SendSlot slot = signaled_slot(attach::SendOpcode::write, 1);
        slot.remote_address = reinterpret_cast<std::uint64_t>(sink.memory.data());
        slot.remote_key = sink.region.remote_key;
        from->pair.post_send(slot, std::array{from->piece(0, bytes)});
      }
    }
    for (auto& from : senders) {
      attach::CompletionEntry entry;
      for (int m = 0; m < messages; ++m) {
        REQUIRE(from->cq.wait(entry));
        REQUIRE(entry.status == attach::EntryStatus::success);
      }
    }
  }

  End sink;
  std::vector<std::unique_ptr<End>> senders;
  std::vector<std::unique_ptr<ClientPair>> sinks;
};

telemetry::ClusterSample cluster(std::uint32_t arm, std::uint64_t packets, std::uint64_t again,
                                 std::uint64_t stalled_ms = 0) {
  telemetry::ClusterSample out;
  out.figures = {arm, 1, packets, again, stalled_ms * 1'000'000};
  return out;
}

}  // namespace

TEST_CASE("the guard of two arms names the one that broke a limit") {
  service::ArmGuard guard;
  const service::GuardLimits limits;
  service::GuardSample nic;
  using Clusters = std::vector<telemetry::ClusterSample>;
  const auto look = [&](const Clusters& clusters) {
    nic.at_ns += 100'000'000;
    return guard.look(nic, clusters, limits);
  };
  // Counts before the first look are not evidence.
  CHECK_FALSE(look({cluster(0, 1000, 500), cluster(1, 1000, 500), cluster(1, 0, 0)}));
  // Two clusters of an arm together break what neither does alone: 8 + 8 packets, limit 10.
  CHECK_FALSE(look({cluster(0, 2000, 500), cluster(1, 2000, 508), cluster(1, 1000, 8)}));
  CHECK_FALSE(look({cluster(0, 3000, 500), cluster(1, 3000, 516), cluster(1, 2000, 16)}));
  const auto third = look({cluster(0, 4000, 500), cluster(1, 4000, 524), cluster(1, 3000, 24)});
  REQUIRE(third);
  CHECK(third->arm == 1);
  CHECK(third->trip.rule == service::GuardRule::retransmitted);
  CHECK(third->trip.figure == Approx(16.0 / 2016));

  // The other one, far beyond at once; what stalled together is not added up.
  guard.forget();
  CHECK_FALSE(look({cluster(0, 4000, 500), cluster(0, 4000, 500), cluster(1, 3000, 24)}));
  CHECK_FALSE(look({cluster(0, 4000, 500, 45), cluster(0, 4000, 500, 45), cluster(1, 3000, 24)}));
  const auto stalled =
      look({cluster(0, 4000, 500, 700), cluster(0, 4000, 500, 60), cluster(1, 3000, 24)});
  REQUIRE(stalled);
  CHECK(stalled->arm == 0);
  CHECK(stalled->trip.rule == service::GuardRule::stalled);
  CHECK(stalled->trip.figure == Approx(655));

  // Arms that have changed sides start again.
  guard.forget();
  CHECK_FALSE(look({cluster(1, 9000, 900), cluster(1, 9000, 900), cluster(0, 9000, 900)}));
}

TEST_CASE("a trial with clusters: who is in it and what it may be", "[threads]") {
  RunningService running({}, hosts_from(kThreeHosts));
  running.on_control([&] {
    service::CongestionController controller(running.service());
    using Errors = std::vector<std::string>;
    CHECK(controller.begin_trial(trial_with({{"h0"}, {"h7"}}, "swift")) ==
          Errors{"there is no NIC \"h7\""});
    CHECK(controller.begin_trial(trial_with({{"h0", "h1"}, {"h2"}}, "swift")).empty());
    CHECK(controller.trials().front().nics == std::vector<std::size_t>{0, 1, 2});
    // An arm for each, and for each one.
    CHECK(controller.use_arm(arms_of({}, 1)).errors ==
          Errors{"the trial \"t\" has 2 clusters: arms is needed, an arm for each"});
    CHECK(controller.use_arm(arms_of({0, 1, 0}, 1)).errors ==
          Errors{"arms: 3 given, the trial \"t\" has 2 clusters"});
    CHECK(controller.nics()[2].in_force.generation == 1);
    CHECK(controller.use_arm(arms_of({0, 1}, 1)).errors.empty());
    // A NIC is told with the arm of its own cluster, which is what its port grants by.
    CHECK(controller.nics()[0].in_force.arm == 0);
    CHECK(controller.nics()[2].in_force.arm == 1);
    CHECK(controller.nics()[2].current.setup.primary.algorithm == cc::AlgorithmId::swift);
    CHECK(controller.trials().front().arm == 1);
    CHECK(controller.use_arm(arms_of({0, 0}, 2)).errors.empty());
    CHECK(controller.trials().front().arm == 0);
    CHECK(controller.nics()[2].in_force.clusters == 2);
    service::ControlRequest end;
    end.name = "t";
    end.keep_candidate = true;
    CHECK(controller.end_trial(end).errors.empty());
    for (const auto& nic : controller.nics()) {
      CHECK(nic.in_force.clusters == 0);
      CHECK(nic.champion.setup.primary.algorithm == cc::AlgorithmId::swift);
    }
    // Arms that cannot be in force at a time are refused before anything is.
    service::ControlRequest sird = trial_with({}, "sird");
    CHECK(controller.begin_trial(sird).empty());
    CHECK(controller.end_trial(end).errors.empty());
    const Errors both = controller.begin_trial(trial_with({{"h0", "h1"}, {"h2"}}, "cadence"));
    REQUIRE(both.size() == 3);
    CHECK(both[0].find("h0: sird and cadence cannot share the uplink") == 0);
  });
}

TEST_CASE("messages are counted by the cluster that they go to", "[threads]") {
  RunningService running({}, hosts_from(kThreeHosts));
  std::unique_ptr<service::CongestionController> controller;
  SegmentWatch watch(running);
  running.on_control(
      [&] { controller = std::make_unique<service::CongestionController>(running.service()); });
  Incast to1(running, "h1", {"h0"});
  Incast to2(running, "h2", {"h0"});
  to1.round(3, 1000);  // before there are clusters: of none
  const auto use = [&](std::vector<std::uint8_t> arms, std::uint8_t epoch) {
    running.on_control([&] { CHECK(controller->use_arm(arms_of(arms, epoch)).errors.empty()); });
    REQUIRE(watch.comes(0, [&](const auto& s) { return s.body.epoch == epoch; }));
  };
  running.on_control([&] {
    CHECK(controller->begin_trial(trial_with({{"h0", "h1"}, {"h2"}}, "swift")).empty());
  });
  use({0, 1}, 5);
  CHECK(watch.sample.body.clusters == 2);
  CHECK(watch.sample.body.own_cluster == 0);
  to1.round(2, 40'000);
  to2.round(4, 500);
  REQUIRE(watch.comes(0, [](const auto& s) {
    return s.messages[0].completed == 9 && s.clusters.at(1).messages[0].completed == 4 &&
           s.clusters[1].figures.queue_pairs == 1;
  }));
  const auto& first = watch.sample.clusters.at(0);
  const auto& second = watch.sample.clusters.at(1);
  CHECK(first.figures.arm == 0);
  CHECK(first.messages[0].begun == 2);
  CHECK(first.messages[0].completed_bytes == 80'000);
  CHECK(first.figures.tx_data_packets == 2 * ((40'000 + 1023) / 1024));
  CHECK(second.figures.arm == 1);
  CHECK(second.messages[0].begun_bytes == 2000);
  CHECK(second.figures.tx_data_packets == 4);
  // Which algorithm each has. Hosts number their queue pairs alike; addresses tell them apart.
  constexpr std::uint8_t kHost1 = 2, kHost2 = 3;  // 10.0.0.2, 10.0.0.3
  const auto algorithm_to = [&](std::uint8_t host) {
    telemetry::QueuePairRecord record;
    for (std::size_t r = 0; r < watch.reader.records(); ++r) {
      if (watch.reader.read_record(0, r, record) && record.peer.back() == host) {
        return std::string(record.algorithm.data());
      }
    }
    return std::string();
  };
  const auto becomes = [&](std::uint8_t host, const std::string& algorithm) {
    for (int i = 0; i < 5000 && algorithm_to(host) != algorithm; ++i) ::usleep(1000);
    return algorithm_to(host) == algorithm;
  };
  CHECK(becomes(kHost1, "dcqcn"));
  CHECK(becomes(kHost2, "swift"));
  // The clusters still count, with their arms exchanged.
  use({1, 0}, 6);
  to1.round(1, 500);
  to2.round(1, 500);
  REQUIRE(watch.comes(0, [](const auto& s) {
    return s.clusters.at(0).messages[0].completed == 3 && s.clusters[1].messages[0].completed == 5;
  }));
  CHECK(watch.sample.clusters[0].figures.arm == 1);
  CHECK(watch.sample.clusters[1].figures.arm == 0);
  CHECK(watch.sample.clusters[0].messages[0].crossed == 0);
  CHECK(becomes(kHost1, "swift"));
  CHECK(becomes(kHost2, "dcqcn"));
  service::ControlRequest end;
  end.name = "t";
  running.on_control([&] { CHECK(controller->end_trial(end).errors.empty()); });
  CHECK(watch.comes(0, [](const auto& s) { return s.body.clusters == 0 && s.body.epoch == 0; }));
}

// The senders' cluster stays with the champion; the sink's has a candidate that floods its port.
TEST_CASE("the guard ends a trial with clusters and says whose arm it was", "[threads]") {
  RunningService running({}, floodable_hosts());
  Incast incast(running, "h0", {"h1", "h2", "h3"});
  std::unique_ptr<service::CongestionController> controller;
  running.on_control([&] {
    controller = std::make_unique<service::CongestionController>(running.service());
    service::ControlRequest trial = trial_with({{"h1", "h2", "h3"}, {"h0"}}, "fixed");
    // Else the senders' retransmissions may be seen before the drops that they come from.
    trial.guard.retransmitted_share = -1;
    CHECK(controller->begin_trial(trial).empty());
    CHECK(controller->use_arm(arms_of({0, 1}, 1)).errors.empty());
  });
  bool over = false;
  std::uint64_t now_ms = 0;
  for (int looks = 0; looks < 20 && !over; ++looks) {
    incast.round(4, 64 << 10);
    ::usleep(20'000);  // several times the interval of publishing
    running.on_control([&] {
      now_ms += service::kGuardLookMs;
      controller->tick(now_ms);
      over = controller->trials().front().state == service::TrialState::tripped;
    });
  }
  CHECK(over);
  running.on_control([&] {
    const service::Trial& trial = controller->trials().front();
    CHECK(trial.why.find("by the candidate's arm") != std::string::npos);
    CHECK(trial.arms == std::vector<std::uint8_t>{0, 0});
    for (std::size_t n = 0; n < controller->nics().size(); ++n) {
      const service::Champions::Nic& nic = controller->nics()[n];
      const auto& events = controller->guard().events(n);
      CHECK(controller->guard().latched(n) == 1);
      CHECK(nic.in_force.arm == 0);
      CHECK(nic.in_force.clusters == 0);
      REQUIRE(events.size() == 1);
      CHECK(events.front().arm == std::optional<std::uint8_t>(1));
      CHECK(events.front().reverted);
    }
  });
}
