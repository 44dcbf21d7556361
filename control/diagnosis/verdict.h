// The verdicts of a diagnosis.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace paceline::diagnosis {

// Verdicts are listed in this order.
enum class Cause : std::uint8_t {
  slow_rank,
  slow_nic,
  pcie_limit,
  slow_receiver,
  wrong_dscp,
  dead_port,
  flapping_port,
  pfc_storm,
  lossy_link,
  bad_path,
  hash_collision,
  wrong_ecn,
  // Caused by the design, not by faults.
  incast,
  oversubscribed,
};
inline constexpr std::uint32_t kCauses = 14;

enum class Place : std::uint8_t { host, port, path, core };

std::string_view name_of(Cause cause);
std::string_view name_of(Place place);
Place place_of(Cause cause);
constexpr bool is_fault(Cause cause) { return cause < Cause::incast; }
// What the operator should do next.
std::string_view advice_of(Cause cause);

struct Verdict {
  Cause cause = Cause::slow_rank;
  std::string culprit;                // named as in [[event]] and [[fault]]
  std::vector<std::string> or_else;   // others that fit the evidence equally well
  double confidence = 0;              // 0..1
  std::vector<std::string> evidence;  // complete sentences
};

}  // namespace paceline::diagnosis
