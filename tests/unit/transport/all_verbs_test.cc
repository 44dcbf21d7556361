// All verbs of the reliable connection at once, in both directions, over a cable that loses,
// repeats, reorders and damages: every byte right, exactly once, in order.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>

#include "tests/unit/transport/lab.h"

namespace paceline::transport::test {
namespace {

constexpr std::uint64_t kHalf = Lab::kMemoryBytes / 2;
constexpr std::uint64_t kWords = 16;        // that atomics work on, at the start of the half
constexpr std::uint64_t kResults = 0x1000;  // where their results go
constexpr std::uint64_t kArea = 0x1'0000;   // of everything else

// One direction of traffic: the initiator's half of both memories, and what must come of it.
class Stream {
 public:
  Stream(Lab& lab, unsigned from, std::uint32_t qp, std::uint64_t seed, std::size_t count,
         std::uint32_t mtu)
      : lab_(lab), from_(from), qp_(qp), base_(from * kHalf), random_(seed, 40 + from) {
    draw(count, mtu);
    // Sources of SEND and WRITE are the initiator's, of READ the target's.
    for (const Job& job : jobs_) {
      Lab::Side& source = job.request.opcode == WorkOpcode::read ? target() : initiator();
      for (std::uint64_t i = 0; i < job.request.length; ++i) {
        if (!is_atomic(job.request.opcode)) {
          source.memory[job.offset + i] = static_cast<std::byte>(random_.next() >> 56);
        }
      }
    }
    for (std::size_t i = 0; i < jobs_.size(); ++i) {
      if (!takes_receive(jobs_[i].request.opcode)) continue;
      expected_.push_back(i);
      REQUIRE(target().receives.post(
          {i, Lab::kBase + jobs_[i].offset, jobs_[i].request.length, target().key}));
    }
    post();
  }

  void post() {
    while (next_ < jobs_.size()) {
      if (lab_.post(from_, qp_, jobs_[next_].request) != PostResult::ok) return;
      ++next_;
    }
  }

  void take() {
    for (const Completion& c : initiator().sent()) {
      REQUIRE(completed_ < jobs_.size());
      while (!jobs_[completed_].request.signaled) ++completed_;
      const Job& job = jobs_[completed_];
      CHECK(c.status == CompletionStatus::success);
      REQUIRE(c.wr_id == completed_);
      CHECK(c.bytes == job.request.length);
      CHECK(c.opcode == completion_opcode(job.request.opcode));
      CHECK(right(job));
      ++completed_;
    }
    for (const Completion& c : target().received()) {
      REQUIRE(received_ < expected_.size());
      const std::size_t i = expected_[received_++];
      const Job& job = jobs_[i];
      CHECK(c.status == CompletionStatus::success);
      REQUIRE(c.wr_id == i);
      CHECK(c.bytes == job.request.length);
      CHECK(c.has_immediate == has_immediate(job.request.opcode));
      if (c.has_immediate) CHECK(c.immediate == job.request.immediate);
      CHECK(c.invalidated == (job.request.opcode == WorkOpcode::send_invalidate));
      if (c.invalidated) CHECK(c.invalidated_key == job.request.remote_key);
      CHECK(right(job));
    }
    post();
  }

  // All has come to its end, and the words hold what all operations, once each, make of them.
  void finish() {
    while (completed_ < jobs_.size() && !jobs_[completed_].request.signaled) ++completed_;
    CHECK(completed_ == jobs_.size());
    CHECK(received_ == expected_.size());
    for (const Job& job : jobs_) CHECK(right(job));
    for (std::uint64_t w = 0; w < kWords; ++w) {
      CHECK(word(target(), base_ + 8 * w) == words_[w]);
    }
  }

 private:
  struct Job {
    WorkRequest request;
    std::uint64_t offset;    // of the bytes, in both memories
    std::uint64_t original;  // atomic: the value it must find
  };

  Lab::Side& initiator() { return lab_.side(from_); }
  Lab::Side& target() { return lab_.side(1 - from_); }
  static std::uint64_t word(const Lab::Side& side, std::uint64_t offset) {
    std::uint64_t value;
    std::memcpy(&value, side.memory.data() + offset, sizeof value);
    return value;
  }

  bool right(const Job& job) {
    if (is_atomic(job.request.opcode)) return word(initiator(), job.offset) == job.original;
    return std::memcmp(initiator().memory.data() + job.offset, target().memory.data() + job.offset,
                       job.request.length) == 0;
  }

  void draw(std::size_t count, std::uint32_t mtu) {
    constexpr WorkOpcode kOpcodes[] = {WorkOpcode::send,         WorkOpcode::send_imm,
                                       WorkOpcode::write,        WorkOpcode::write_imm,
                                       WorkOpcode::read,         WorkOpcode::read,
                                       WorkOpcode::fetch_add,    WorkOpcode::fetch_add,
                                       WorkOpcode::compare_swap, WorkOpcode::send_invalidate};
    std::uint64_t at = base_ + kArea + 1;
    std::uint64_t results = base_ + kResults;
    const std::uint64_t sizes[] = {0,   1,       3,       4,           mtu - 1,
                                   mtu, mtu + 1, 2 * mtu, 3 * mtu + 2, 9 * mtu};
    for (std::size_t i = 0; i < count; ++i) {
      Job job{};
      WorkRequest& r = job.request;
      r.opcode = kOpcodes[random_.below(std::size(kOpcodes))];
      r.wr_id = i;
      r.immediate = static_cast<std::uint32_t>(random_.next());
      r.signaled = i + 1 == count || random_.below(4) != 0;
      r.fence = random_.below(8) == 0;
      r.local_key = initiator().key;
      r.remote_key = target().key;
      if (is_atomic(r.opcode)) {
        const std::uint64_t w = random_.below(kWords);
        r.length = kAtomicBytes;
        r.remote_address = Lab::kBase + base_ + 8 * w;
        r.swap_add = random_.next();
        r.compare = random_.below(2) == 0 ? words_[w] : random_.next();
        job.original = words_[w];
        const AtomicOperation operation{r.opcode == WorkOpcode::compare_swap, r.compare,
                                        r.swap_add};
        words_[w] = operation.result(words_[w]);
        job.offset = results;
        results += 8;
      } else {
        r.length = random_.below(3) == 0 ? random_.below(6 * std::uint64_t{mtu})
                                         : sizes[random_.below(std::size(sizes))];
        job.offset = at;
        at += r.length + 1 + random_.below(5);
        if (at >= base_ + kHalf) break;
        r.remote_address = Lab::kBase + job.offset;
        if (r.opcode == WorkOpcode::send_invalidate) {
          r.remote_key = target().engine.regions().add_elided(0, 64, access::remote_invalidate);
        }
      }
      r.local_address = Lab::kBase + job.offset;
      jobs_.push_back(job);
    }
    jobs_.back().request.signaled = true;
  }

  Lab& lab_;
  unsigned from_;
  std::uint32_t qp_;
  std::uint64_t base_;
  Random random_;
  std::vector<Job> jobs_;
  std::vector<std::size_t> expected_;  // those that take a receive request
  std::array<std::uint64_t, kWords> words_{};
  std::size_t next_ = 0;
  std::size_t completed_ = 0;
  std::size_t received_ = 0;
};

void run_all(const LabOptions& options, std::size_t count) {
  Lab lab(options);
  const std::uint32_t mtu = options.engine.payload_mtu;
  const auto first = static_cast<std::uint32_t>(0xFF'FF00 + options.seed * 16);
  const Lab::Pair pair = lab.connect(first, first + 77);
  Stream forth(lab, 0, pair.a, options.seed, count, mtu);
  Stream back(lab, 1, pair.b, options.seed, count, mtu);
  std::uint64_t polls = 0;
  lab.on_poll = [&](unsigned side) {
    forth.take();
    back.take();
    if (options.tx_burst > 1 && ++polls % 50 == 0) lab.side(side).port.refuse_calls(1);
  };
  lab.run(picos_from_micros(60'000'000));
  CHECK(lab.a().engine.state_of(pair.a) == QpState::rts);
  CHECK(lab.b().engine.state_of(pair.b) == QpState::rts);
  forth.finish();
  back.finish();
  CHECK(lab.leftovers() == "");
}

// Over a good cable nothing is sent twice.
void run_calm(const LabOptions& options) {
  Lab lab(options);
  const Lab::Pair pair = lab.connect();
  Stream forth(lab, 0, pair.a, options.seed, 300, options.engine.payload_mtu);
  Stream back(lab, 1, pair.b, options.seed, 300, options.engine.payload_mtu);
  lab.on_poll = [&](unsigned) {
    forth.take();
    back.take();
  };
  CHECK(lab.run(picos_from_micros(1'000'000)));
  forth.finish();
  back.finish();
  for (unsigned side = 0; side < 2; ++side) {
    const auto& c = lab.side(side).counters();
    CHECK(c.retransmitted_packets == 0);
    CHECK(c.timeouts == 0);
    CHECK(c.naks_sent == 0);
    CHECK(c.lost_packets == 0);
    CHECK(c.tail_probes == 0);
    CHECK(c.implied_naks == 0);
    CHECK(c.duplicates == 0);
  }
  CHECK(lab.leftovers() == "");
}

LabOptions calm(std::uint64_t seed) {
  LabOptions options;
  options.seed = seed;
  options.engine.payload_mtu = seed % 2 == 0 ? 1024 : 256;
  options.engine.ack_every = seed < 3 ? 1 : 8;
  return options;
}

struct Weather {
  const char* name;
  Impairments impairments;
};

LabOptions bad(const Weather& weather, std::uint64_t seed) {
  LabOptions options;
  options.seed = seed;
  options.impairments = weather.impairments;
  options.engine.payload_mtu = seed % 2 == 0 ? 1024 : 256;
  options.engine.ack_every = seed % 3 == 0 ? 16 : 1;
  options.tx_burst = seed % 2 == 0 ? 1 : 8;
  options.qp.retransmit_timeout = picos_from_micros(100);
  options.qp.retry_count = 100;
  options.qp.max_rd_atomic = options.qp.max_dest_rd_atomic =
      static_cast<std::uint8_t>(1 + seed * 3 % 16);
  return options;
}

LabOptions selective(LabOptions options) {
  options.engine.reliability = Reliability::selective;
  options.engine.multipath = options.seed % 3 == 0
                                 ? Multipath::none
                                 : (options.seed % 3 == 1 ? Multipath::packet : Multipath::chunk);
  options.engine.window_packets = options.seed % 2 == 0 ? 64 : 512;
  options.engine.reorder_packets = options.seed % 4 == 0 ? 16 : 128;
  options.engine.place_in_order = options.seed % 5 == 0;
  return options;
}

TEST_CASE("all verbs, both ways, over a good cable: nothing is sent twice", "[transport]") {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    CAPTURE(seed);
    run_calm(calm(seed));
  }
}

TEST_CASE("all verbs, both ways, over bad cables", "[transport]") {
  const Weather weathers[] = {
      {"drop", {.drop = 0.02}},
      {"duplicate", {.duplicate = 0.05}},
      {"reorder", {.reorder = 0.02, .max_hold = 6}},
      {"all", {.drop = 0.01, .corrupt = 0.01, .duplicate = 0.02, .reorder = 0.01, .mark = 0.1}},
  };
  for (const Weather& weather : weathers) {
    for (std::uint64_t seed = 1; seed <= 6; ++seed) {
      CAPTURE(weather.name, seed);
      run_all(bad(weather, seed), 200);
    }
  }
}

TEST_CASE("all verbs under selective repeat over a good cable: nothing is sent twice",
          "[transport][selective]") {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    CAPTURE(seed);
    run_calm(selective(calm(seed)));
  }
}

TEST_CASE("all verbs under selective repeat over bad cables", "[transport][selective]") {
  const Weather weathers[] = {
      {"drop", {.drop = 0.02}},
      {"duplicate", {.duplicate = 0.05}},
      {"reorder", {.reorder = 0.1, .max_hold = 20}},
      {"all", {.drop = 0.01, .corrupt = 0.01, .duplicate = 0.02, .reorder = 0.05, .mark = 0.1}},
  };
  for (const Weather& weather : weathers) {
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
      CAPTURE(weather.name, seed);
      run_all(selective(bad(weather, seed)), 200);
    }
  }
}

}  // namespace
}  // namespace paceline::transport::test
