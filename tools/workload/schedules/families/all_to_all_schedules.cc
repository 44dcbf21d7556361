#include <bit>
#include <functional>
#include <numeric>
#include <vector>

#include "tools/workload/schedules/families/families.h"
#include "tools/workload/schedules/schedule_builder.h"

namespace paceline::workload {

namespace {

constexpr std::uint32_t kMostInBatch = 8;  // NCCL's messages of one peer that go as one

enum class RoundWait : std::uint8_t { send, send_and_receive };

// Rounds in each of which every rank sends to one peer and receives from one. Round i waits for the
// same rank's round i - in_flight.
struct PeerRounds {
  std::function<std::uint32_t(std::uint32_t round, std::uint32_t rank)> peer;
  std::uint32_t in_flight = 1;
  RoundWait wait = RoundWait::send_and_receive;
};

// Straight from the input of a rank to the result of another.
void add_direct(ScheduleBuilder& builder, std::uint32_t from, std::uint32_t to) {
  builder.add({.block = to, .source = to, .target = from, .source_buffer = ScheduleBuffer::input});
}

// From the input of a rank to a place at the relay of its block, and on from there.
void add_to_relay(ScheduleBuilder& builder, std::uint32_t to, std::uint32_t place) {
  builder.add({.block = to,
               .source = to,
               .target = place,
               .source_buffer = ScheduleBuffer::input,
               .target_buffer = ScheduleBuffer::scratch});
}
void add_from_relay(ScheduleBuilder& builder, std::uint32_t from, std::uint32_t to,
                    std::uint32_t place) {
  builder.add(
      {.block = to, .source = place, .target = from, .source_buffer = ScheduleBuffer::scratch});
}

Schedule run_peer_rounds(std::uint32_t n, const PeerRounds& rounds) {
  ScheduleBuilder builder(CollectiveOp::all_to_all, n, n);
  std::vector<std::vector<std::uint32_t>> received(n - 1, std::vector<std::uint32_t>(n));
  for (std::uint32_t i = 0; i + 1 < n; ++i) {
    for (std::uint32_t r = 0; r < n; ++r) {
      const std::uint32_t peer = rounds.peer(i, r);
      received[i][peer] = builder.begin(r, peer);
      add_direct(builder, r, peer);
      if (i < rounds.in_flight) continue;
      const std::uint32_t earlier = i - rounds.in_flight;
      builder.wait_for(earlier * n + r);  // n transfers a round, by sender
      if (rounds.wait == RoundWait::send_and_receive) builder.wait_for(received[earlier][r]);
    }
  }
  return builder.finish();
}

// The distances 0, 1, 3, 6, 10 .. modulo the next power of two, without those beyond `groups`.
std::vector<std::uint32_t> triangular_distances(std::uint32_t groups) {
  const std::uint32_t modulus = std::bit_ceil(groups);
  std::vector<std::uint32_t> distances;
  std::uint32_t x = 0;
  for (std::uint32_t i = 1; i <= modulus; ++i) {
    if (x < groups) distances.push_back(x);
    x = (x + i) % modulus;
  }
  return distances;
}

// One slot's data at rank r, after the steps of the bits in `done`: where it is from, and goes to.
struct BruckSlot {
  std::uint32_t slot;
  std::uint32_t done;

  std::uint32_t origin(std::uint32_t n, std::uint32_t r) const { return (r + n - done) % n; }
  std::uint32_t destination(std::uint32_t n, std::uint32_t r) const {
    return (r + n - done + slot) % n;
  }
};

// A place of scratch for every hop of every slot except its last: a rank that is ahead must not
// overwrite what is still to be sent.
std::vector<std::uint32_t> bruck_first_places(std::uint32_t n) {
  std::vector<std::uint32_t> first(n + 1, 0);
  for (std::uint32_t slot = 1; slot < n; ++slot)
    first[slot + 1] = first[slot] + static_cast<std::uint32_t>(std::popcount(slot)) - 1;
  return first;
}

// Slot of rank r in the step of `bit`, one of the slot's.
Piece bruck_piece(std::uint32_t n, std::uint32_t r, std::uint32_t slot, std::uint32_t bit,
                  std::uint32_t first_place) {
  const BruckSlot now{slot, slot & (bit - 1)};
  const auto hops = static_cast<std::uint32_t>(std::popcount(now.done));
  const std::uint32_t destination = now.destination(n, r);
  Piece piece{.block = destination, .source = destination, .target = now.origin(n, r)};
  piece.source_buffer = ScheduleBuffer::input;
  if (hops > 0) {
    piece.source = first_place + hops - 1;
    piece.source_buffer = ScheduleBuffer::scratch;
  }
  if (slot >= 2 * bit) {  // continues from there
    piece.target = first_place + hops;
    piece.target_buffer = ScheduleBuffer::scratch;
  }
  return piece;
}

}  // namespace

Schedule linear_shift_schedule(const GroupShape& group, const ScheduleOptions&) {
  const std::uint32_t n = group.ranks;
  return run_peer_rounds(
      n, {.peer = [n](std::uint32_t i, std::uint32_t r) { return (r + i + 1) % n; }});
}

Schedule pairwise_xor_schedule(const GroupShape& group, const ScheduleOptions&) {
  return run_peer_rounds(group.ranks,
                         {.peer = [](std::uint32_t i, std::uint32_t r) { return r ^ (i + 1); }});
}

Schedule window_all_to_all_schedule(const GroupShape& group, const ScheduleOptions& options) {
  const std::uint32_t n = group.ranks;
  return run_peer_rounds(n,
                         {.peer = [n](std::uint32_t i, std::uint32_t r) { return (r + i + 1) % n; },
                          .in_flight = options.window == 0 ? n : options.window,
                          .wait = RoundWait::send});
}

Schedule nccl_all_to_all_schedule(const GroupShape& group, const ScheduleOptions&) {
  const std::uint32_t together = std::gcd(8U, group.per_server);
  const std::uint32_t groups = group.ranks / together;
  const std::vector<std::uint32_t> distances = triangular_distances(groups);
  const auto peer = [&](std::uint32_t i, std::uint32_t r) {
    const std::uint32_t round = i + 1;  // round 0 is the rank's own block
    const std::uint32_t to = (r / together + distances[round / together]) % groups;
    return to * together + (r + round) % together;
  };
  return run_peer_rounds(group.ranks, {.peer = peer, .in_flight = 8});
}

// Step k sends all slots with bit k to the rank 2^k above; slot j begins as the block for rank
// r + j and ends as the block from rank r - j.
Schedule bruck_all_to_all_schedule(const GroupShape& group, const ScheduleOptions&) {
  const std::uint32_t n = group.ranks;
  const std::vector<std::uint32_t> first_places = bruck_first_places(n);
  ScheduleBuilder builder(CollectiveOp::all_to_all, n, n, first_places.back());
  std::uint32_t step_before = 0;  // its first transfer; they are in the order of their senders
  for (std::uint32_t bit = 1; bit < n; bit *= 2) {
    const auto first = static_cast<std::uint32_t>(builder.schedule().transfers.size());
    for (std::uint32_t r = 0; r < n; ++r) {
      builder.begin(r, (r + bit) % n);
      for (std::uint32_t slot = bit; slot < n; ++slot) {
        if ((slot & bit) != 0) builder.add(bruck_piece(n, r, slot, bit, first_places[slot]));
      }
      if (bit > 1) builder.wait_for(step_before + (r + n - bit / 2) % n);
    }
    step_before = first;
  }
  return builder.finish();
}

// Blocks for another server go first to the GPU of the own server that is on the receiver's rail.
// Along the rail each source's block is a message of its own: one message for all of a server's
// sources would wait for the last of them.
Schedule pxn_all_to_all_schedule(const GroupShape& group, const ScheduleOptions&) {
  const std::uint32_t n = group.ranks;
  const std::uint32_t g = group.per_server;
  const std::uint32_t servers = n / g;
  ScheduleBuilder builder(CollectiveOp::all_to_all, n, n, (g - 1) * (servers - 1));
  for (std::uint32_t far = 0; far < servers; ++far) {
    for (std::uint32_t r = 0; r < n; ++r) {
      for (std::uint32_t i = far == 0 ? 1 : 0; i < g; ++i) {
        const std::uint32_t local = (r + i) % g;
        const std::uint32_t to = (r / g + far) % servers * g + local;
        if (far == 0 || i == 0) {
          builder.begin(r, to);
          add_direct(builder, r, to);
          continue;
        }
        const std::uint32_t relay = r / g * g + local;
        const std::uint32_t place = (far - 1) * (g - 1) + i - 1;
        builder.begin(r, relay);
        add_to_relay(builder, to, place);
        builder.begin(relay, to);
        add_from_relay(builder, r, to, place);
      }
    }
  }
  return builder.finish();
}

// The same, but along the rail a server's blocks for one receiver are a message, up to eight of
// them, as NCCL sends them. It begins when all of them have arrived.
Schedule pxn_batched_all_to_all_schedule(const GroupShape& group, const ScheduleOptions&) {
  const std::uint32_t n = group.ranks;
  const std::uint32_t g = group.per_server;
  const std::uint32_t servers = n / g;
  ScheduleBuilder builder(CollectiveOp::all_to_all, n, n, (g - 1) * (servers - 1));
  const auto place = [g](std::uint32_t far, std::uint32_t source, std::uint32_t relay) {
    return (far - 1) * (g - 1) + source - (source > relay ? 1 : 0);
  };
  for (std::uint32_t far = 0; far < servers; ++far) {
    for (std::uint32_t r = 0; r < n; ++r) {
      for (std::uint32_t i = 1; i < g; ++i) {
        const std::uint32_t local = (r + i) % g;
        const std::uint32_t to = (r / g + far) % servers * g + local;
        builder.begin(r, r / g * g + local);
        far == 0 ? add_direct(builder, r, to) : add_to_relay(builder, to, place(far, r % g, local));
      }
    }
    for (std::uint32_t r = 0; far != 0 && r < n; ++r) {
      const std::uint32_t to = (r + far * g) % n;
      for (std::uint32_t source = 0; source < g; ++source) {
        if (source % kMostInBatch == 0) builder.begin(r, to);
        if (source == r % g) {
          add_direct(builder, r, to);
        } else {
          add_from_relay(builder, r / g * g + source, to, place(far, source, r % g));
        }
      }
    }
  }
  return builder.finish();
}

}  // namespace paceline::workload
