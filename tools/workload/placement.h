// Ranks on NICs: which NIC each rank of a workload has, and how its messages go between servers of
// several NICs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "dataplane/config/server_shape.h"
#include "dataplane/config/toml/diagnostics.h"
#include "dataplane/driver/traffic/message_plan.h"

namespace paceline::workload {

// The NIC of each rank. There are as many ranks as NICs, and each NIC has one.
using Placement = std::vector<std::uint32_t>;

// packed: a server's NICs one after the other, then the next server's; spread: a rail's servers,
// then the next rail's; random: drawn from the seed.
Placement place_ranks(std::string_view rule, const config::ServerShape& shape, std::uint64_t seed);

// Lines of `rank server nic`, in any order.
config::Read<Placement> parse_placement(std::string_view text, const std::string& source,
                                        const config::ServerShape& shape);
config::Read<Placement> read_placement_file(const std::string& path,
                                            const config::ServerShape& shape);

// Replaces the ranks that the messages of a plan name by their NICs. Keeps the order of messages.
void put_on_nics(MessagePlan& plan, const Placement& placement);

// PXN: a message to another server and another rail becomes two: to the NIC of that rail by NVLink,
// and then along the rail (PlannedMessage::relays). Messages between the same two NICs share a
// queue pair. Keeps the order of messages.
void relay_along_rails(MessagePlan& plan, const config::ServerShape& shape);

}  // namespace paceline::workload
