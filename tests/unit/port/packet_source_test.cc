// The pool as a cache over packets that a source owns.
#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <memory>
#include <stdexcept>
#include <vector>

#include "dataplane/base/numbers/random.h"
#include "dataplane/port/packet_pool.h"

namespace paceline {
namespace {

// A fixed number of packets; knows which are out.
class Shelf final : public PacketSource {
 public:
  explicit Shelf(std::size_t packets) : packets_(packets), out_(std::make_unique<bool[]>(packets)) {
    for (Packet& packet : packets_) in_.push_back(&packet);
  }

  std::size_t take(std::span<Packet*> out) override {
    ++takes;
    const std::size_t n = std::min(out.size(), in_.size());
    for (std::size_t i = 0; i < n; ++i) {
      out[i] = arrival();
    }
    return n;
  }
  void give(std::span<Packet* const> packets) override {
    ++gives;
    for (Packet* packet : packets) {
      bool& is_out = out_[static_cast<std::size_t>(packet - packets_.data())];
      if (!is_out) throw std::logic_error("given back twice");
      is_out = false;
      in_.push_back(packet);
    }
  }
  std::size_t in() const { return in_.size(); }
  // As a device does: takes one for a frame that arrives, keeps one that is sent.
  Packet* arrival() {
    if (in_.empty()) return nullptr;
    Packet* packet = in_.back();
    in_.pop_back();
    out_[static_cast<std::size_t>(packet - packets_.data())] = true;
    return packet;
  }
  void sent(Packet* packet) { give({&packet, 1}); }

  unsigned takes = 0;
  unsigned gives = 0;

 private:
  std::vector<Packet> packets_;
  std::unique_ptr<bool[]> out_;
  std::vector<Packet*> in_;
};

TEST_CASE("packet source: taken in bulk, used one by one, given back at the end") {
  Shelf shelf(100);
  {
    PacketPool pool(shelf, 100, 64, 7);
    Packet* first = pool.alloc();
    REQUIRE(first != nullptr);
    CHECK(first->pool_id == 7);
    CHECK(first->flags == 0);
    const std::size_t cached = pool.free_packets();
    CHECK(cached > 0);
    CHECK(shelf.takes == 1);
    std::vector<Packet*> more;
    for (std::size_t i = 0; i < cached; ++i) more.push_back(pool.alloc());
    CHECK(shelf.takes == 1);
    CHECK(pool.free_packets() == 0);
    CHECK(pool.in_use() == cached + 1);
    pool.free(first);
    CHECK(pool.alloc() == first);
    CHECK(shelf.takes == 1);
    pool.free(first);
    for (Packet* packet : more) pool.free(packet);
    CHECK(pool.in_use() == 0);
  }
  CHECK(shelf.in() == 100);
}

TEST_CASE("packet source: when it is empty, so is the pool, and it is counted") {
  Shelf shelf(40);
  PacketPool pool(shelf, 40, 64);
  std::vector<Packet*> all;
  while (Packet* packet = pool.alloc()) all.push_back(packet);
  CHECK(all.size() == 40);
  CHECK(pool.exhausted() == 1);
  CHECK(pool.scarce());
  for (Packet* packet : all) pool.free(packet);
  CHECK(!pool.scarce());
  CHECK(pool.alloc() != nullptr);
}

TEST_CASE("packet source: a pool that mostly receives does not swallow the source") {
  Shelf shelf(4000);
  PacketPool pool(shelf, 4000, 64);
  for (int burst = 0; burst < 200; ++burst) {
    std::array<Packet*, 32> arrived;
    for (Packet*& packet : arrived) {
      packet = shelf.arrival();
      REQUIRE(packet != nullptr);
    }
    pool.come(arrived.size());
    for (Packet* packet : arrived) pool.free(packet);
    pool.settle();
    REQUIRE(pool.free_packets() <= 256 + arrived.size());
    REQUIRE(shelf.in() + pool.free_packets() == 4000);
  }
  CHECK(shelf.gives > 0);
}

// Whatever happens in whatever order: every packet is in one place.
TEST_CASE("packet source: packets are conserved") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    INFO("seed " << seed);
    Random random(seed, 0);
    Shelf shelf(500);
    {
      PacketPool pool(shelf, 500, 64);
      std::vector<Packet*> held;
      for (int step = 0; step < 2000; ++step) {
        switch (random.below(5)) {
          case 0:
          case 1:
            if (Packet* packet = pool.alloc()) held.push_back(packet);
            break;
          case 2:
            if (Packet* packet = shelf.arrival()) {
              pool.come(1);
              held.push_back(packet);
            }
            break;
          case 3:
            if (!held.empty()) {
              pool.free(held.back());
              held.pop_back();
            }
            break;
          default:
            if (!held.empty()) {
              pool.go(1);
              shelf.sent(held.back());
              held.pop_back();
            }
            pool.settle();
        }
        REQUIRE(pool.in_use() == held.size());
        REQUIRE(shelf.in() + pool.free_packets() + held.size() == 500);
      }
      for (Packet* packet : held) pool.free(packet);
    }
    REQUIRE(shelf.in() == 500);
  }
}

}  // namespace
}  // namespace paceline
