// One look at a host, as it travels: what the service's status says about each NIC, and the records
// of its queue pairs that have sent. pacelined writes it (GET /v1/look); commands that compare
// hosts read it, from daemons and from files.
#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "dataplane/telemetry/segment.h"

namespace paceline::looks {

struct SeenNic {
  std::string name;
  std::uint64_t rate_bps = 0;  // of the link; 0: unlimited
  bool emulated = false;
  nlohmann::json status = nlohmann::json::object();  // its entry in the service's status
  std::vector<telemetry::QueuePairRecord> queue_pairs;
};

struct SeenHost {
  std::uint64_t start_unix_ns = 0;  // of the service: another one counts from 0 again
  std::vector<SeenNic> nics;
};

// Completes NICs, which are in the order of the telemetry segment, from the service's status.
// Returns why the two are not of the same service, or an empty text.
std::string add_status(const nlohmann::json& status, std::vector<SeenNic>& nics);

// Queue pairs that have sent nothing are left out, and members of queue pairs that are 0.
nlohmann::json look_json(const SeenHost& host);
// The reverse, for any input. Returns what is wrong and where, or an empty text.
std::string read_look(const nlohmann::json& look, SeenHost& out);

// A GID as text; empty: all zero.
std::string gid_text(const std::array<std::uint8_t, 16>& gid);

}  // namespace paceline::looks
