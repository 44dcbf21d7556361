// Emulated NICs in virtual time: what a worker of the service does with them, without the service.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <catch2/catch.hpp>

#include "cc/registry.h"
#include "dataplane/base/numbers/random.h"
#include "dataplane/config/testbed/testbed_reader.h"
#include "dataplane/service/nics/make_nic_sets.h"
#include "tests/support/program_end.h"

namespace paceline::service::test {

inline config::Read<config::Testbed> read_testbed(std::string_view text,
                                                  std::vector<std::string> overrides = {}) {
  config::ReaderOptions options;
  options.algorithms = cc::algorithms();
  options.overrides = std::move(overrides);
  return config::read_testbed_text(text, "t.toml", "", options);
}

inline std::unique_ptr<NicSet> nics_from(std::string_view text) {
  const auto testbed = read_testbed(text);
  REQUIRE(testbed.errors == std::vector<std::string>{});
  MadeNicSets made = make_nic_sets(testbed.value);
  REQUIRE(made.errors == std::vector<std::string>{});
  REQUIRE(made.sets.size() == 1);
  return std::move(made.sets.front());
}

// A program's end on one NIC.
struct Side : paceline::test::ProgramEnd {
  Side(NicSet& nics, std::size_t index, std::size_t bytes)
      : ProgramEnd(*nics.nic(index).engine, 1024, bytes), nic(index) {
    REQUIRE(qp != 0);
  }

  void fill(std::uint64_t seed) {
    Random random(seed, 0);
    for (std::byte& b : memory) b = static_cast<std::byte>(random.next() >> 56);
  }
  std::vector<transport::Completion> sent() {
    std::vector<transport::Completion> out(sends.size());
    out.resize(sends.poll(out));
    return out;
  }

  std::size_t nic;
};

// Drives a set in virtual time.
class Turns {
 public:
  explicit Turns(NicSet& nics) : nics_(nics) {}

  Picos now() const { return now_; }
  std::uint64_t turns() const { return turns_; }

  // By the GIDs with this index of both, at their ports of this number.
  void connect(Side& a, Side& b, std::size_t gid, std::uint32_t port = 1) {
    connect_one(a, b, gid, port);
    connect_one(b, a, gid, port);
  }
  void post(Side& side, const transport::WorkRequest& request) {
    REQUIRE(side.engine.post_send(now_, side.qp, request) == transport::PostResult::ok);
    nics_.touch(side.nic);
  }
  // Until nothing is left to happen (true), or `limit`.
  bool run(Picos limit = kNever) {
    nics_.turn(now_, Picos{0});
    ++turns_;
    while (nics_.next_deadline() != kNever) {
      if (nics_.next_deadline() > limit) {
        now_ = later(now_, limit);
        return false;
      }
      now_ = later(now_, nics_.next_deadline());
      nics_.turn(now_, Picos{0});
      ++turns_;
    }
    return true;
  }

 private:
  void connect_one(Side& from, const Side& to, std::size_t gid, std::uint32_t port) {
    wire::IpAddress address;
    address.bytes = attach::gid_of(nics_.nic(to.nic).info, port, gid);
    const auto path = nics_.path_to(from.nic, address);
    REQUIRE(path.has_value());
    REQUIRE(from.connect(now_, *path, to));
    nics_.touch(from.nic);
  }

  NicSet& nics_;
  Picos now_{0};
  std::uint64_t turns_ = 0;
};

}  // namespace paceline::service::test
