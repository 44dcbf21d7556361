// Random requests of all verbs of the reliable connection, and what must come of them: every byte
// right, exactly once, in order.
#pragma once

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cstdint>
#include <cstring>
#include <vector>

#include "tests/unit/transport/lab.h"

namespace paceline::transport::test {

// One direction of traffic: the initiator's half of both memories, and what must come of it.
class VerbStream {
 public:
  // `srq`: XRC, number of the target's shared receive queue.
  VerbStream(Lab& lab, unsigned from, std::uint32_t qp, std::uint64_t seed, std::size_t count,
             std::uint32_t mtu, std::uint32_t srq = 0)
      : lab_(lab), from_(from), qp_(qp), srq_(srq), base_(from * kHalf), random_(seed, 40 + from) {
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
  static constexpr std::uint64_t kHalf = Lab::kMemoryBytes / 2;
  static constexpr std::uint64_t kWords = 16;  // that atomics work on, at the start of the half
  static constexpr std::uint64_t kResults = 0x1000;  // where their results go
  static constexpr std::uint64_t kArea = 0x1'0000;   // of everything else

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
      r.target_srq = srq_;
      jobs_.push_back(job);
    }
    jobs_.back().request.signaled = true;
  }

  Lab& lab_;
  unsigned from_;
  std::uint32_t qp_;
  std::uint32_t srq_;
  std::uint64_t base_;
  Random random_;
  std::vector<Job> jobs_;
  std::vector<std::size_t> expected_;  // those that take a receive request
  std::array<std::uint64_t, kWords> words_{};
  std::size_t next_ = 0;
  std::size_t completed_ = 0;
  std::size_t received_ = 0;
};

}  // namespace paceline::transport::test
