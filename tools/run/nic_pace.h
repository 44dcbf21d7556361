// How the messages of each NIC of a world fared, and which NIC is slow.
#pragma once

#include <cstdint>
#include <vector>

#include "dataplane/driver/traffic/fabric_ideal.h"
#include "dataplane/driver/virtual/virtual_world.h"
#include "tools/run/job_report.h"

namespace paceline::tools {

// The unit that a median is over: messages, or the bytes that they carry.
enum class PaceWeight : std::uint8_t { messages, bytes };

class NicPaces {
 public:
  // The run of `world` has ended. It must outlive this.
  explicit NicPaces(const VirtualWorld& world);

  // By NIC, of the messages that were complete in (after, until].
  std::vector<NicPace> between(Picos after, Picos until, PaceWeight weight) const;
  // The median of the time over ideal of all messages from each NIC to each, sender * NICs +
  // receiver; 0 without any.
  std::vector<double> by_pair() const;

 private:
  void lower_paces(std::vector<std::uint32_t>& ids, const FabricIdeal& ideal);

  const VirtualWorld& world_;
  std::vector<std::vector<std::uint32_t>> sent_;  // messages, by NIC
  std::vector<std::vector<std::uint32_t>> received_;
  std::vector<double> paces_;  // by message
};

// Appends the NIC that is slow, if one is.
void find_slow_nic(const std::vector<NicPace>& nics, std::vector<Straggler>& out);

}  // namespace paceline::tools
