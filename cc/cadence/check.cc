// The invariants of a receiving port, in numbers.
#include <algorithm>
#include <string>
#include <string_view>

#include "cc/cadence/receiver.h"

namespace paceline::cc {
namespace {

std::string fault(std::string_view what, std::uint64_t is, std::uint64_t bound) {
  return "cadence receiver: " + std::string(what) + ": " + std::to_string(is) + " against " +
         std::to_string(bound);
}

}  // namespace

std::string CadenceReceiver::check_invariants(Nanos now) const {
  std::uint64_t com = 0;
  std::uint64_t grant = 0;
  std::uint32_t active = 0;
  std::uint32_t waiting = 0;
  std::uint32_t listed = 0;
  std::uint32_t committed = 0;
  for (std::uint32_t peer = 0; peer < channels_.size(); ++peer) {
    const Channel& ch = channels_[peer];
    com += ch.com;
    grant += ch.grant;
    const bool listed_active = (active_[peer / 64] >> peer % 64 & 1) != 0;
    if (listed_active != (ch.mode == Mode::active)) {
      return fault("active or not, of peer", peer, listed_active ? 1 : 0);
    }
    committed += ch.com > 0 ? 1 : 0;
    active += ch.mode == Mode::active ? 1 : 0;
    waiting += ch.mode == Mode::waiting ? 1 : 0;
    listed += ch.position != 0 ? 1 : 0;
    if (ch.com < ch.grant) return fault("I1: committed below granted, Mb/s", ch.com, ch.grant);
    if (ch.com > 0 && ch.position == 0) return fault("I1: committed but not listed", peer, ch.com);
    if (ch.position != 0 && listed_[ch.position - 1] != peer) {
      return fault("list mixed up at peer", peer, ch.position);
    }
    if (ch.mode == Mode::idle && ch.com > 0) return fault("idle but committed", peer, ch.com);

    // I2: a sender that obeys our newest grant stays below the ceilings it was given. What was on
    // its way when the channel appeared may count twice: at most one start, but where another
    // algorithm had the connection before.
    const std::uint64_t arrived = ch.rx_base + counters(peer).rx_bytes;
    const std::uint64_t ceiling = std::max(ch.limit_total, ch.sent_known) +
                                  params_.most_start_bytes + 2 * params_.packet_bytes;
    if (!ch.midway && ch.mode == Mode::active && ch.echo == ch.seq && ch.seq != 0 &&
        arrived > ceiling) {
      return fault("I2: arrived beyond the ceiling, bytes", arrived, ceiling);
    }

    // I4: an active channel is granted something within T_live; a waiting one gets its turn.
    const auto age_us = static_cast<std::uint32_t>(now.count / 1000) - ch.turn_us;
    const std::int64_t in_force = params_new_ ? 0 : now.count - params_at_;
    const std::int64_t age = std::min(static_cast<std::int64_t>(age_us) * 1000, in_force);
    const std::int64_t burst = std::int64_t{8} * params_.max_active * params_.control_ns;
    const std::int64_t live = 64 * params_.rtt_ns + 2 * lease_ns_ + burst;
    if (ch.mode == Mode::active && ch.grant == 0 && age > live) {
      return fault("I4: active without a grant, ns", static_cast<std::uint64_t>(age),
                   static_cast<std::uint64_t>(live));
    }
    const std::int64_t turns =
        2 + std::int64_t{waiting_count_} / std::max(1U, params_.max_active / 2);
    const std::int64_t wait = 2 * turns * (params_.rotation_ns + burst);
    if (ch.mode == Mode::waiting && age > wait) {
      return fault("I4: waiting beyond its turn, ns", static_cast<std::uint64_t>(age),
                   static_cast<std::uint64_t>(wait));
    }
  }
  if (grant != grant_sum_) return fault("sum of grants, Mb/s", grant_sum_, grant);
  if (com != com_sum_) return fault("I1: sum of committed rates, Mb/s", com_sum_, com);
  const std::uint64_t most = std::max<std::uint64_t>(
      committed > 1 ? plan_mbps(params_, 2) : params_.link_mbps, stood_mbps_);
  if (com > most) return fault("I1: committed beyond the plan, Mb/s", com, most);
  if (worst_raise_ > 0) return fault("I1: an increase beyond the capacity, Mb/s", worst_raise_, 0);
  if (active != active_count_) return fault("active channels", active_count_, active);
  if (waiting != waiting_count_) return fault("waiting channels", waiting_count_, waiting);
  if (listed != listed_.size()) return fault("listed channels", listed_.size(), listed);
  const std::uint32_t seats = std::max(params_.max_active, stood_active_);
  if (active > seats) return fault("active set", active, seats);
  return {};
}

}  // namespace paceline::cc
