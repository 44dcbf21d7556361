// The faults that `paceline exec --fault` injects on purpose. The command checks the text and puts
// it into the program's environment; the verbs library obeys it. Rules are separated by ';':
//
//   KIND,WHEN[,for=TIME][,qp=N]    WHEN: at=N, every=N or rate=P
//
// Requests are counted per queue pair, from 1; only requests that a fault of the kind can hit
// count. Whether a request is hit depends on the seed, the rule, the queue pair's position among
// those that the program has created, and the request's number, but never on time.
// the program has made, and the request's number: never on time.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "dataplane/base/text/enum_text.h"

namespace paceline::attach {

inline constexpr const char* kFaultVariable = "PACELINE_FAULT";
inline constexpr const char* kSeedVariable = "PACELINE_SEED";
inline constexpr const char* kReorderVariable = "PACELINE_REORDER";

enum class FaultKind : std::uint8_t {
  local_protection,
  remote_access,
  remote_operational,
  retry_exceeded,
  rnr,
  slow,
  port_down,
  gid_change,
};
inline constexpr EnumTexts<8> kFaultKinds{"local-protection", "remote-access", "remote-operational",
                                          "retry-exceeded",   "rnr",           "slow",
                                          "port-down",        "gid-change"};

struct FaultRule {
  FaultKind kind = FaultKind::slow;
  std::uint64_t at = 0;     // this request; 0: see the next
  std::uint64_t every = 0;  // one in so many; 0: see the next
  double rate = 0;          // each with this probability
  std::uint64_t for_us = 0;
  std::uint32_t queue_pair = 0;  // the one made as the n-th; 0: each

  // `rule`: its place in the plan.
  bool hits(std::uint64_t seed, std::uint32_t rule, std::uint32_t queue_pair_number,
            std::uint64_t request) const;
};

// An error, or an empty text and the rules.
std::string parse_fault_rules(std::string_view text, std::vector<FaultRule>& out);
// Reads a whole decimal number of at most 64 bits. False: the text is not one.
bool parse_count(std::string_view text, std::uint64_t& out);

}  // namespace paceline::attach
