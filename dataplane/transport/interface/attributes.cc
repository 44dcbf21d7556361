#include "dataplane/transport/interface/attributes.h"

#include <array>
#include <bit>

namespace paceline::transport {

namespace {

using namespace qp_attribute;

constexpr std::uint32_t kBasic = pkey_index | port;

// Rows of vol. 1, 11.2.5.2 (tables of required and optional modifiers). Alternate paths, their
// migration, and a change of the path while the queue is drained are not offered. Where RC has
// attributes for both of its ends, an XRC queue pair has those of its own end.
using Columns = std::array<std::uint32_t, 5>;  // RC, UC, UD, XRC initiator, XRC target
struct Row {
  QpState from;
  QpState to;
  Columns required;
  Columns optional;
};

constexpr std::uint32_t kToRtr = path | path_mtu | dest_qp_number | rq_psn;
constexpr std::uint32_t kAsks = timeout | retry_count | rnr_retry | max_rd_atomic;
constexpr std::uint32_t kConnected = kBasic | access_flags;
constexpr std::uint32_t kAnswers = max_dest_rd_atomic | min_rnr_timer;
constexpr std::uint32_t kRights = access_flags | pkey_index;
constexpr std::uint32_t kRnr = access_flags | min_rnr_timer;

constexpr std::array kRows = std::to_array<Row>({
    {QpState::reset,
     QpState::init,
     {kConnected, kConnected, kBasic | qkey, kConnected, kConnected},
     {0, 0, 0, 0, 0}},
    {QpState::init,
     QpState::init,
     {0, 0, 0, 0, 0},
     {kConnected, kConnected, kBasic | qkey, kConnected, kConnected}},
    {QpState::init,
     QpState::rtr,
     {kToRtr | kAnswers, kToRtr, 0, kToRtr, kToRtr | kAnswers},
     {kRights, kRights, qkey | pkey_index, kRights | kAnswers, kRights}},
    {QpState::rtr,
     QpState::rts,
     {kAsks | sq_psn, sq_psn, sq_psn, kAsks | sq_psn, timeout | sq_psn},
     {kRnr, access_flags, qkey, kRnr, kRnr | kAsks}},
    {QpState::rts, QpState::rts, {0, 0, 0, 0, 0}, {kRnr, access_flags, qkey, kRnr, kRnr}},
    {QpState::rts,
     QpState::sqd,
     {0, 0, 0, 0, 0},
     {notify_drained, notify_drained, notify_drained, notify_drained, notify_drained}},
    {QpState::sqd,
     QpState::sqd,
     {0, 0, 0, 0, 0},
     {kAsks | kAnswers | kRights, kRights, qkey | pkey_index, kAsks | kAnswers | kRights,
      kAsks | kAnswers | kRights}},
    {QpState::sqd, QpState::rts, {0, 0, 0, 0, 0}, {kRnr, access_flags, qkey, kRnr, kRnr}},
    {QpState::sqe, QpState::rts, {0, 0, 0, 0, 0}, {0, access_flags, qkey, 0, 0}},
});

}  // namespace

TransitionRule transition_rule(QpType type, QpState from, QpState to) {
  // Allowed from any state, with nothing else.
  if (to == QpState::reset || to == QpState::error) return {true, 0, 0};
  // A send queue alone cannot fail under a reliable service (vol. 1, 10.3.1.6).
  if (is_reliable(type) && from == QpState::sqe) return {};
  for (const Row& row : kRows) {
    if (row.from != from || row.to != to) continue;
    const auto column = static_cast<std::size_t>(type);
    return {true, row.required[column], row.optional[column]};
  }
  return {};
}

ModifyResult check_transition(QpType type, QpState from, QpState to, std::uint32_t mask) {
  const TransitionRule rule = transition_rule(type, from, to);
  if (!rule.allowed) return {ModifyError::bad_transition, state};
  const std::uint32_t missing = rule.required & ~mask;
  if (missing != 0) return {ModifyError::missing_attribute, missing & -missing};
  const std::uint32_t extra = mask & ~(rule.required | rule.optional | state | current_state);
  if (extra != 0) return {ModifyError::unexpected_attribute, extra & -extra};
  return {};
}

const char* to_string(ModifyError error) {
  switch (error) {
    case ModifyError::none:
      return "ok";
    case ModifyError::no_queue_pair:
      return "no such queue pair";
    case ModifyError::wrong_current_state:
      return "the queue pair is not in the state given as current";
    case ModifyError::bad_transition:
      return "there is no transition between these states";
    case ModifyError::missing_attribute:
      return "an attribute is missing";
    case ModifyError::unexpected_attribute:
      return "an attribute may not be set here";
    case ModifyError::bad_value:
      return "a value is out of range";
    case ModifyError::not_drained:
      return "the send queue is not drained yet";
  }
  return "unknown";
}

const char* attribute_name(std::uint32_t attribute) {
  constexpr std::array<const char*, kCount> kNames = {
      "state",         "current_state", "notify_drained", "access_flags",
      "pkey_index",    "port",          "qkey",           "path",
      "path_mtu",      "timeout",       "retry_count",    "rnr_retry",
      "rq_psn",        "sq_psn",        "max_rd_atomic",  "max_dest_rd_atomic",
      "min_rnr_timer", "dest_qp_number"};
  const auto index = static_cast<std::size_t>(std::countr_zero(attribute));
  return std::has_single_bit(attribute) && index < kNames.size() ? kNames[index] : "none";
}

}  // namespace paceline::transport
