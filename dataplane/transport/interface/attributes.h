// Attributes of modify_qp and query_qp (InfiniBand vol. 1, 11.2.5.2), and the rules of which
// attribute goes with which change of state.
#pragma once

#include <cstdint>

#include "dataplane/base/protocol/psn.h"
#include "dataplane/base/units.h"
#include "dataplane/transport/interface/types.h"
#include "dataplane/wire/headers/addresses.h"
#include "dataplane/wire/headers/headers.h"

namespace paceline::transport {

// The path to the peer: the address vector of a connection (vol. 1, 11.2.2.1).
struct QpPath {
  wire::IpAddress ip{};
  wire::MacAddress mac{};
  std::uint16_t source_port = wire::kFirstSourcePort;  // path entropy
  std::uint8_t traffic_class = kDefaultDataClass;
};

// One bit each: the attributes that a call sets.
namespace qp_attribute {
inline constexpr std::uint32_t state = 1U << 0;
inline constexpr std::uint32_t current_state = 1U << 1;  // refused unless this is the current state
inline constexpr std::uint32_t notify_drained = 1U << 2;
inline constexpr std::uint32_t access_flags = 1U << 3;
inline constexpr std::uint32_t pkey_index = 1U << 4;
inline constexpr std::uint32_t port = 1U << 5;
inline constexpr std::uint32_t qkey = 1U << 6;
inline constexpr std::uint32_t path = 1U << 7;
inline constexpr std::uint32_t path_mtu = 1U << 8;
inline constexpr std::uint32_t timeout = 1U << 9;
inline constexpr std::uint32_t retry_count = 1U << 10;
inline constexpr std::uint32_t rnr_retry = 1U << 11;
inline constexpr std::uint32_t rq_psn = 1U << 12;
inline constexpr std::uint32_t sq_psn = 1U << 13;
inline constexpr std::uint32_t max_rd_atomic = 1U << 14;
inline constexpr std::uint32_t max_dest_rd_atomic = 1U << 15;
inline constexpr std::uint32_t min_rnr_timer = 1U << 16;
inline constexpr std::uint32_t dest_qp_number = 1U << 17;
inline constexpr unsigned kCount = 18;
}  // namespace qp_attribute

struct QpAttributes {
  QpState state = QpState::reset;
  QpState current_state = QpState::reset;
  bool notify_drained = false;   // raise sq_drained when SQD is reached
  std::uint8_t access = 0;       // of access::remote
  std::uint16_t pkey_index = 0;  // the table has one entry, the default key
  std::uint8_t port = 1;         // an engine has one
  std::uint32_t qkey = 0;
  QpPath path{};
  std::uint16_t path_mtu = 0;           // 256, 512, 1024, 2048, 4096; at most the engine's
  Picos timeout{0};                     // of the local ACK; 0 = none
  std::uint8_t retry_count = 0;         // 0 .. 7
  std::uint8_t rnr_retry = 0;           // 0 .. 7; 7 = for ever
  std::uint8_t min_rnr_timer = 0;       // 0 .. 31, table 45
  std::uint8_t max_rd_atomic = 0;       // as initiator
  std::uint8_t max_dest_rd_atomic = 0;  // as target
  Psn rq_psn{};
  Psn sq_psn{};
  std::uint32_t dest_qp_number = 0;
};

// The most READs and atomics outstanding, in either direction.
inline constexpr std::uint8_t kMaxRdAtomic = 128;

// Local ACK timeout by its code (vol. 1, 9.7.6.1.3): 4.096 us * 2^code; 0 means none.
constexpr Picos ack_timeout(std::uint8_t code) {
  return Picos{code == 0 ? 0 : std::int64_t{4'096'000} << (code & 31U)};
}

enum class ModifyError : std::uint8_t {
  none,
  no_queue_pair,
  wrong_current_state,   // current_state was given and is wrong
  bad_transition,        // no transition leads from here to there
  missing_attribute,     // the change needs it
  unexpected_attribute,  // the transition does not allow it, or the service lacks it
  bad_value,
  not_drained,  // back to RTS before SQD was reached
};

// Why a change was refused, and because of which attribute (a bit of qp_attribute; 0: none in
// particular). A refused change has changed nothing.
struct ModifyResult {
  ModifyError error = ModifyError::none;
  std::uint32_t attribute = 0;

  constexpr bool ok() const { return error == ModifyError::none; }
  friend constexpr bool operator==(ModifyResult, ModifyResult) = default;
};

// Attributes that a change of state must and may set, besides state and current_state.
struct TransitionRule {
  bool allowed = false;
  std::uint32_t required = 0;
  std::uint32_t optional = 0;
};
TransitionRule transition_rule(QpType type, QpState from, QpState to);

// Applies the rule to a call that sets `mask`. Does not look at the values.
ModifyResult check_transition(QpType type, QpState from, QpState to, std::uint32_t mask);

const char* to_string(ModifyError error);
const char* attribute_name(std::uint32_t attribute);

}  // namespace paceline::transport
