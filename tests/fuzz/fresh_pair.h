// What fuzz_engine promises of engines after any input: queue pairs made now work.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "tests/fuzz/engine_pair.h"
#include "tests/soak/pattern.h"

namespace paceline::fuzz {

// Two fresh queue pairs, in a protection domain and class that no input has touched, move bytes
// both ways by every verb.
inline void fresh_pair_works(EnginePair& pair) {
  using namespace transport;
  constexpr std::uint32_t kDomain = 0x77;
  constexpr std::uint64_t kBase = 0x9000'0000;
  constexpr std::uint64_t kPart = 4096;
  constexpr std::uint64_t kLength = 900;
  struct FreshEnd {
    std::vector<std::byte> memory = std::vector<std::byte>(8 * kPart);
    CompletionQueue sent{64};
    CompletionQueue received{64};
    ReceiveQueue receives{16, ReceiveSharing::owned};
    std::uint32_t key = 0;
    std::uint32_t qp = 0;
  };
  std::array<FreshEnd, 2> fresh;
  for (unsigned side = 0; side < 2; ++side) {
    FreshEnd& f = fresh[side];
    Engine& engine = pair.ends[side]->engine;
    pair.ends[side]->weather.set({});
    pair.ends[side]->last_switch.trim_every = 0;
    f.key = engine.regions().add_plain(kBase, f.memory, End::kAll, kDomain);
    QpConfig config = pair.qp_config(side, 1);
    config.type = QpType::rc;
    config.pd = kDomain;
    config.traffic_class = 5;
    config.send_cq = &f.sent;
    config.receive_cq = &f.received;
    config.receive_queue = &f.receives;
    // Longer than receivers take to reclaim what they granted to peers that lied.
    config.retransmit_timeout = picos_from_micros(1000);
    config.retry_count = 100;
    config.rnr_retry = 7;
    f.qp = engine.create_qp(config);
    // The parts of the memory: SEND, WRITE and READ of this end, in both memories alike.
    for (unsigned verb = 0; verb < 3; ++verb) {
      FreshEnd& source = verb == 2 ? fresh[1 - side] : f;
      soak::fill_pattern(std::span(source.memory).subspan((4 * side + verb) * kPart, kLength),
                         10 * side + verb, 0);
    }
  }
  for (unsigned side = 0; side < 2; ++side) {
    FreshEnd& f = fresh[side];
    FreshEnd& peer = fresh[1 - side];
    End& end = *pair.ends[side];
    const QpAddress remote =
        pair.ends[1 - side]->engine.address_of(peer.qp, Psn(0xFF'FFFE - (1 - side)));
    promise(end.engine.connect(pair.now, f.qp, remote, Psn(0xFF'FFFE - side), 0xC777),
            "a fresh pair does not connect");
    promise(end.engine.post_receive(pair.now, f.qp,
                                    {1, kBase + 4 * (1 - side) * kPart, kLength, f.key}),
            "a fresh pair takes no receive");
    for (unsigned verb = 0; verb < 4; ++verb) {
      constexpr WorkOpcode kOpcodes[] = {WorkOpcode::send_imm, WorkOpcode::write, WorkOpcode::read,
                                         WorkOpcode::fetch_add};
      WorkRequest r;
      r.wr_id = verb;
      r.opcode = kOpcodes[verb];
      r.length = verb == 3 ? kAtomicBytes : kLength;
      r.swap_add = 41;
      r.local_address = r.remote_address = kBase + (4 * side + verb) * kPart;
      r.local_key = f.key;
      r.remote_key = peer.key;
      promise(end.engine.post_send(pair.now, f.qp, r) == PostResult::ok,
              "a fresh pair takes no work");
    }
    end.touched = true;
  }
  const Picos limit = pair.now + picos_from_micros(200'000);
  while (fresh[0].sent.size() + fresh[1].sent.size() < 8) {
    promise(pair.now < limit, "a fresh pair does not get its work done");
    if (pair.run(pair.now + picos_from_micros(100), 20'000)) break;
  }
  for (unsigned side = 0; side < 2; ++side) {
    FreshEnd& f = fresh[side];
    FreshEnd& peer = fresh[1 - side];
    std::array<Completion, 8> list;
    promise(f.sent.poll(list) == 4, "a fresh pair: completions are missing");
    for (unsigned verb = 0; verb < 4; ++verb) {
      if (list[verb].status == CompletionStatus::success && list[verb].wr_id == verb) continue;
      wrong("a fresh pair: request " + std::to_string(list[verb].wr_id) + " ends with " +
            to_string(list[verb].status));
    }
    promise(f.received.poll(list) == 1 && list[0].status == CompletionStatus::success &&
                list[0].bytes == kLength,
            "a fresh pair: the receive is not complete");
    for (unsigned verb = 0; verb < 3; ++verb) {
      FreshEnd& into = verb == 2 ? f : peer;
      const auto part = std::span(into.memory).subspan((4 * side + verb) * kPart, kLength);
      promise(soak::pattern_mismatch(part, 10 * side + verb, 0) == kLength,
              "a fresh pair: wrong bytes");
    }
    std::uint64_t word;
    std::memcpy(&word, peer.memory.data() + (4 * side + 3) * kPart, sizeof word);
    promise(word == 41, "a fresh pair: the atomic did not run once");
  }
  for (unsigned side = 0; side < 2; ++side) {
    pair.ends[side]->engine.destroy_qp(pair.now, fresh[side].qp);
    pair.ends[side]->touched = true;
  }
}

}  // namespace paceline::fuzz
