// One direction of an RC queue pair: every operation, drawn at random, with all that must come of
// it: each byte in its place and nowhere else, once, in order, and each completion as it should be.
#pragma once

#include <cstdint>
#include <deque>

#include "tests/soak/arena.h"
#include "tests/soak/stage.h"

namespace paceline::soak {

struct ReliableSetup {
  unsigned from = 0;       // host of the initiator
  std::uint32_t qp = 0;    // of the initiator
  std::uint32_t peer = 0;  // of the target
  std::uint32_t mtu = 1024;
  std::uint64_t base = 0;  // of its part of both memories
  std::uint64_t bytes = 0;
  std::uint64_t largest = 0;  // message
  std::uint32_t max_inline = 0;
  unsigned segments = 1;
  bool shared_receives = false;
  bool slow_memory = false;
  bool reads = true;  // READs and atomics
};

class ReliableStream final : public Stream {
 public:
  ReliableStream(Stage& stage, const ReliableSetup& setup, Random random);

  void on_sent(const transport::Completion& completion) override;
  void on_received(const transport::Completion& completion) override;
  void post() override;
  void step() override;
  bool finished() const override { return closed_ && jobs_.empty() && awaited_.empty(); }
  std::string state() const override;
  void check_finished() override;
  void add_to(Totals& totals) const override;

 private:
  static constexpr std::uint64_t kWords = 16;  // that atomics work on: the first bytes of the part

  static constexpr std::uint64_t kNobody = ~std::uint64_t{0};

  struct Job {
    std::uint64_t index = 0;
    transport::WorkRequest request;
    std::uint64_t key = 0;   // of the pattern
    std::uint64_t from = 0;  // first byte of it
    std::uint64_t slot = 0;
    Pieces local;
    Pieces remote;
    bool owns_local = true;  // else the bytes are another job's, or were given back when posted
    bool owns_remote = true;
    bool in_shared = false;        // received into a shared buffer
    bool shared_counter = false;   // atomic
    std::uint64_t original = 0;    // atomic: the value it must find
    std::uint64_t uses = kNobody;  // job whose bytes these are
    std::uint64_t needed_by = 0;   // newest job that uses its bytes
    std::array<transport::Segment, Pieces::kMost> segments{};
  };

  Host& initiator() { return *stage_.hosts[setup_.from]; }
  Host& target() { return *stage_.hosts[1 - setup_.from]; }
  Job& job(std::uint64_t index) { return jobs_[index - jobs_.front().index]; }

  bool draw();
  void draw_last();
  void draw_atomic(Job& job);
  bool draw_reuse(Job& job);
  std::uint64_t draw_length();
  bool place(Job& job);
  void name_local(Job& job);
  void post_receives(std::uint64_t most);
  void check_arrived(std::uint64_t end);
  void check_pieces(Host& host, const Pieces& pieces, const Job& job, const char* what);
  void complete(Job& job);
  void retire();

  Stage& stage_;
  ReliableSetup setup_;
  Random random_;
  SlotRing ring_;
  std::deque<Job> jobs_;               // not retired
  std::deque<std::uint64_t> awaited_;  // jobs whose receive has not completed
  std::deque<std::uint64_t> due_;      // jobs whose receive is not posted (own queue)
  bool drawn_ = false;                 // the newest job is not posted yet
  bool closed_ = false;                // the last one is drawn
  std::uint64_t next_index_ = 0;
  std::uint64_t done_ = 0;        // jobs below are complete at the initiator
  std::uint64_t arrived_ = 0;     // jobs below have been looked at in the target's memory
  std::uint64_t unsignaled_ = 0;  // in a row
  std::uint64_t depth_ = 8;       // the most jobs in flight, at present
  bool late_receives_ = false;
  std::array<std::uint64_t, kWords> words_{};
  std::uint64_t payload_ = 0;  // drawn
};

}  // namespace paceline::soak
