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

// A program's end on one NIC: a queue pair with its queues and memory.
struct Side {
  static constexpr std::uint64_t kBase = 0x10'0000;

  Side(NicSet& nics, std::size_t index, std::size_t bytes)
      : nic(index),
        engine(*nics.nic(index).engine),
        sends(1024),
        receives(1024),
        receive_queue(1024),
        memory(bytes) {
    key = engine.regions().add_plain(kBase, memory,
                                     transport::access::remote | transport::access::local_write);
    transport::QpConfig config;
    config.send_cq = &sends;
    config.receive_cq = &receives;
    config.receive_queue = &receive_queue;
    config.retransmit_timeout = picos_from_micros(500);
    qp = engine.create_qp(config);
    REQUIRE(qp != 0);
  }

  void fill(std::uint64_t seed) {
    Random random(seed, 0);
    for (std::byte& b : memory) b = static_cast<std::byte>(random.next() >> 56);
  }
  transport::WorkRequest write(std::uint64_t id, std::uint64_t length, const Side& to) const {
    transport::WorkRequest request;
    request.opcode = transport::WorkOpcode::write;
    request.wr_id = id;
    request.length = length;
    request.local_address = kBase;
    request.local_key = key;
    request.remote_address = kBase;
    request.remote_key = to.key;
    return request;
  }
  std::vector<transport::Completion> sent() {
    std::vector<transport::Completion> out(sends.size());
    out.resize(sends.poll(out));
    return out;
  }

  std::size_t nic;
  transport::Engine& engine;
  transport::CompletionQueue sends;
  transport::CompletionQueue receives;
  transport::ReceiveQueue receive_queue;
  std::vector<std::byte> memory;
  std::uint32_t key = 0;
  std::uint32_t qp = 0;
};

// Drives a set in virtual time.
class Turns {
 public:
  explicit Turns(NicSet& nics) : nics_(nics) {}

  Picos now() const { return now_; }
  std::uint64_t turns() const { return turns_; }

  // By the GIDs with this index of both.
  void connect(Side& a, Side& b, std::size_t gid) {
    connect_one(a, b, gid);
    connect_one(b, a, gid);
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
  void connect_one(Side& from, const Side& to, std::size_t gid) {
    wire::IpAddress address;
    address.bytes = nics_.nic(to.nic).info.gids[gid];
    const auto path = nics_.path_to(from.nic, address);
    REQUIRE(path.has_value());
    REQUIRE(from.engine.connect(now_, from.qp, {path->ip, path->mac, to.qp, Psn(7)}, Psn(7),
                                path->source_port));
    nics_.touch(from.nic);
  }

  NicSet& nics_;
  Picos now_{0};
  std::uint64_t turns_ = 0;
};

}  // namespace paceline::service::test
