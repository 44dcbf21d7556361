#include "tests/perf/probed_world.h"

#include <array>
#include <deque>
#include <memory>
#include <stdexcept>
#include <vector>

#include "cc/registry.h"
#include "dataplane/config/testbed/testbed_reader.h"
#include "dataplane/probing/probe_end.h"
#include "dataplane/service/nics/make_nic_sets.h"
#include "tests/support/program_end.h"

namespace paceline::perf {

namespace {

using service::NicSet;
using test::ProgramEnd;

constexpr std::uint64_t kMessage = 256 << 10;
constexpr std::uint64_t kAtOnce = 4;  // messages of a NIC
constexpr std::uint32_t kDepth = 64;  // of queues
// 100 Gb/s, and 462 bytes of a probe with its two answers: every 74 us that is 0.05 %, what
// `paceline mesh` takes by default.
constexpr Picos kInterval = picos_from_micros(74);

// The least turn of a worker with so many busy NICs.
constexpr Picos kTurn = picos_from_micros(1);

constexpr const char* kTestbed = R"(
[fabric]
topology = "star"
hosts = 8
rate = "100Gb/s"
delay = "500ns"

[cc]
algorithm = "fixed"
)";

class ProbedWorld {
 public:
  explicit ProbedWorld(std::uint64_t messages) {
    config::ReaderOptions options;
    options.algorithms = cc::algorithms();
    const auto testbed = config::read_testbed_text(kTestbed, "probed", "", options);
    if (!testbed.ok()) throw std::invalid_argument(testbed.errors.front());
    auto made = service::make_nic_sets(testbed.value);
    if (!made.errors.empty()) throw std::invalid_argument(made.errors.front());
    nics_ = std::move(made.sets.front());
    for (std::size_t nic = 0; nic < nics_->size(); ++nic) {
      Flow& flow = flows_.emplace_back();
      flow.to = (nic + 3) % nics_->size();
      flow.left = messages;
      flow.a = std::make_unique<ProgramEnd>(*nics_->nic(nic).engine, kDepth, kMessage);
      flow.b = std::make_unique<ProgramEnd>(*nics_->nic(flow.to).engine, kDepth, kMessage);
      connect(*flow.a, nic, *flow.b, flow.to);
      connect(*flow.b, flow.to, *flow.a, nic);
      for (std::uint64_t i = 0; i < kAtOnce; ++i) post(nic);
    }
  }

  void probe() {
    for (std::size_t nic = 0; nic < nics_->size(); ++nic) {
      ends_.push_back(std::make_unique<probing::ProbeEnd>(Picos{0}, *nics_->nic(nic).engine, 77,
                                                          static_cast<std::uint32_t>(500 + nic),
                                                          probing::HostClock{}));
    }
    probing::ProbePlan plan;
    plan.session = 3;
    plan.interval = kInterval;
    for (std::size_t from = 0; from < ends_.size(); ++from) {
      std::vector<probing::ProbePeer> peers;
      for (std::size_t to = 0; to < ends_.size(); ++to) {
        if (to == from) continue;
        peers.push_back({path(from, to), ends_[to]->qp_number(), ends_[to]->qkey()});
      }
      plan.number = static_cast<std::uint32_t>(from);
      ends_[from]->begin(Picos{0}, plan, peers, kDefaultDataClass);
    }
  }

  ProbedCounts run() {
    while (under_way_ != 0) {
      Picos next = nics_->next_deadline();
      for (const auto& end : ends_) next = earlier(next, end->next_deadline());
      now_ = later(now_ + kTurn, next);
      nics_->turn(now_, Picos{0});
      for (std::size_t i = 0; i < ends_.size(); ++i) {
        if (ends_[i]->poll(now_)) nics_->touch(i);
      }
      for (std::size_t nic = 0; nic < flows_.size(); ++nic) collect(nic);
    }
    ProbedCounts out;
    // Data of probes are datagrams; they are no work.
    out.packets = completed_ * (kMessage / 4096);
    for (const auto& end : ends_) out.probes += end->prober()->totals().answered;
    return out;
  }

 private:
  struct Flow {
    std::size_t to = 0;
    std::uint64_t left = 0;  // messages that are not posted yet
    std::unique_ptr<ProgramEnd> a;
    std::unique_ptr<ProgramEnd> b;
  };

  transport::QpPath path(std::size_t from, std::size_t to) const {
    return *nics_->path_to(from, wire::IpAddress{nics_->nic(to).info.gids[0]});
  }
  void connect(ProgramEnd& from, std::size_t nic, const ProgramEnd& to, std::size_t peer) {
    if (!from.connect(now_, path(nic, peer), to)) {
      throw std::runtime_error("a queue pair cannot be connected");
    }
    nics_->touch(nic);
  }
  void post(std::size_t nic) {
    Flow& flow = flows_[nic];
    if (flow.left == 0) return;
    --flow.left;
    ++under_way_;
    const transport::WorkRequest request = flow.a->write(0, kMessage, *flow.b);
    if (flow.a->engine.post_send(now_, flow.a->qp, request) != transport::PostResult::ok) {
      throw std::runtime_error("a message cannot be posted");
    }
    nics_->touch(nic);
  }
  void collect(std::size_t nic) {
    std::array<transport::Completion, 8> some;
    const std::size_t count = flows_[nic].a->sends.poll(some);
    for (std::size_t i = 0; i < count; ++i) {
      if (some[i].status != transport::CompletionStatus::success) {
        throw std::runtime_error("a message has failed");
      }
      ++completed_;
      --under_way_;
      post(nic);
    }
  }

  std::unique_ptr<NicSet> nics_;
  std::deque<Flow> flows_;
  std::vector<std::unique_ptr<probing::ProbeEnd>> ends_;
  Picos now_{0};
  std::uint64_t under_way_ = 0;
  std::uint64_t completed_ = 0;
};

}  // namespace

ProbedCounts run_probed_world(bool probes, std::uint64_t messages) {
  ProbedWorld world(messages);
  if (probes) world.probe();
  return world.run();
}

}  // namespace paceline::perf
