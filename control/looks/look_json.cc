#include "control/looks/look_json.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

namespace paceline::looks {

namespace {

using Json = nlohmann::json;
using telemetry::QueuePairRecord;

constexpr int kSchema = 1;

struct Member {
  const char* name;
  std::uint64_t QueuePairRecord::*field;
};
constexpr auto kMembers = std::to_array<Member>({
    {"tx_bytes", &QueuePairRecord::tx_bytes},
    {"rx_bytes", &QueuePairRecord::rx_bytes},
    {"retransmitted_packets", &QueuePairRecord::retransmitted_packets},
    {"timeouts", &QueuePairRecord::timeouts},
    {"naks_received", &QueuePairRecord::naks_received},
    {"rnr_received", &QueuePairRecord::rnr_received},
    {"cnps_received", &QueuePairRecord::cnps_received},
    {"cnps_sent", &QueuePairRecord::cnps_sent},
    {"completions", &QueuePairRecord::completions},
    {"inflight_bytes", &QueuePairRecord::inflight_bytes},
    {"backlog_bytes", &QueuePairRecord::backlog_bytes},
    {"srtt_ns", &QueuePairRecord::srtt_ns},
    {"min_rtt_ns", &QueuePairRecord::min_rtt_ns},
    {"source_port", &QueuePairRecord::source_port},
});

struct Delay {
  const char* name;
  std::int64_t QueuePairRecord::*field;
};
constexpr auto kDelays = std::to_array<Delay>({
    {"one_way_there_ns", &QueuePairRecord::one_way_there_ns},
    {"one_way_back_ns", &QueuePairRecord::one_way_back_ns},
});

Json pair_json(const QueuePairRecord& record) {
  Json out{{"number", record.number},
           {"peer", gid_text(record.peer)},
           {"peer_number", record.peer_number},
           {"limited_ns", record.limiter_ns}};
  for (const Member& member : kMembers) {
    if (record.*member.field != 0) out[member.name] = record.*member.field;
  }
  for (const Delay& delay : kDelays) {
    if (record.*delay.field != 0) out[delay.name] = record.*delay.field;
  }
  return out;
}

// Reads members; the first error is kept, with the way to it.
class Reader {
 public:
  const std::string& error() const { return error_; }
  void fail(const std::string& where, const std::string& what) {
    if (error_.empty()) error_ = fmt::format("{}: {}", where, what);
  }
  bool good() const { return error_.empty(); }

  // Null, and an error, where it is not there or of another type.
  const Json* member(const Json& of, const std::string& where, const char* name,
                     Json::value_t type) {
    const auto at = of.is_object() ? of.find(name) : of.end();
    if (!of.is_object() || at == of.end() || at->type() != type) {
      fail(where, fmt::format("\"{}\" is missing or of another type", name));
      return nullptr;
    }
    return &*at;
  }

  // Absent: 0.
  std::uint64_t number(const Json& of, const std::string& where, const char* name,
                       std::uint64_t most = std::numeric_limits<std::uint64_t>::max()) {
    const auto at = of.find(name);
    if (at == of.end()) return 0;
    if (!at->is_number_unsigned() || at->get<std::uint64_t>() > most) {
      fail(where, fmt::format("\"{}\": expected a whole number from 0 to {}", name, most));
      return 0;
    }
    return at->get<std::uint64_t>();
  }
  std::int64_t signed_number(const Json& of, const std::string& where, const char* name) {
    const auto at = of.find(name);
    if (at == of.end()) return 0;
    if (!at->is_number_integer()) fail(where, fmt::format("\"{}\": expected a whole number", name));
    return at->is_number_integer() ? at->get<std::int64_t>() : 0;
  }

  QueuePairRecord pair(const Json& from, const std::string& where) {
    QueuePairRecord out;
    if (!from.is_object()) {
      fail(where, "expected an object");
      return out;
    }
    constexpr std::uint64_t kMost32 = std::numeric_limits<std::uint32_t>::max();
    out.number = static_cast<std::uint32_t>(number(from, where, "number", kMost32));
    out.peer_number = static_cast<std::uint32_t>(number(from, where, "peer_number", kMost32));
    if (const Json* const peer = member(from, where, "peer", Json::value_t::string)) {
      const auto& text = peer->get_ref<const std::string&>();
      if (!text.empty() && ::inet_pton(AF_INET6, text.c_str(), out.peer.data()) != 1) {
        fail(where, "\"peer\": expected an IPv6 address");
      }
    }
    if (const Json* const limits = member(from, where, "limited_ns", Json::value_t::array)) {
      const bool fits = limits->size() == out.limiter_ns.size() &&
                        std::all_of(limits->begin(), limits->end(),
                                    [](const Json& one) { return one.is_number_unsigned(); });
      if (fits) {
        out.limiter_ns = limits->get<decltype(out.limiter_ns)>();
      } else {
        fail(where, fmt::format("\"limited_ns\": expected {} whole numbers from 0 on",
                                out.limiter_ns.size()));
      }
    }
    for (const Member& one : kMembers) out.*one.field = number(from, where, one.name);
    for (const Delay& one : kDelays) out.*one.field = signed_number(from, where, one.name);
    return out;
  }

  SeenNic nic(const Json& from, const std::string& where) {
    SeenNic out;
    const Json* const name = member(from, where, "name", Json::value_t::string);
    const Json* const emulated = member(from, where, "emulated", Json::value_t::boolean);
    const Json* const status = member(from, where, "status", Json::value_t::object);
    const Json* const pairs = member(from, where, "queue_pairs", Json::value_t::array);
    if (!good()) return out;
    out.name = name->get<std::string>();
    out.emulated = emulated->get<bool>();
    out.status = *status;
    out.rate_bps = number(from, where, "rate_bps");
    for (std::size_t i = 0; i < pairs->size() && good(); ++i) {
      out.queue_pairs.push_back(pair((*pairs)[i], fmt::format("{}.queue_pairs[{}]", where, i)));
    }
    return out;
  }

 private:
  std::string error_;
};

}  // namespace

std::string add_status(const nlohmann::json& status, std::vector<SeenNic>& nics) {
  std::size_t count = 0;
  if (!status.is_object()) return "its status is not a JSON object";
  for (const Json& worker : status.value("workers", Json::array())) {
    for (const Json& nic : worker.value("nics", Json::array())) {
      const std::size_t at = count++;
      if (at >= nics.size()) continue;
      if (nic.value("name", "") != nics[at].name) {
        return fmt::format("NIC {} is called {} in its telemetry and {} in its status", at,
                           nics[at].name, nic.value("name", ""));
      }
      nics[at].emulated = worker.contains("fabric");
      nics[at].status = nic;
    }
  }
  if (count == nics.size()) return {};
  return fmt::format("its telemetry has {} NICs, its status {}", nics.size(), count);
}

nlohmann::json look_json(const SeenHost& host) {
  Json nics = Json::array();
  for (const SeenNic& nic : host.nics) {
    Json pairs = Json::array();
    for (const QueuePairRecord& record : nic.queue_pairs) {
      if (record.number != 0 && record.tx_bytes != 0) pairs.push_back(pair_json(record));
    }
    nics.push_back({{"name", nic.name},
                    {"rate_bps", nic.rate_bps},
                    {"emulated", nic.emulated},
                    {"status", nic.status},
                    {"queue_pairs", std::move(pairs)}});
  }
  return {{"schema", kSchema}, {"start_unix_ns", host.start_unix_ns}, {"nics", std::move(nics)}};
}

std::string read_look(const nlohmann::json& look, SeenHost& out) {
  Reader reader;
  out = {};
  if (!look.is_object()) return "a look: expected an object";
  if (look.value("schema", Json()) != kSchema) {
    return fmt::format("a look: \"schema\" is not {}: it is of another version", kSchema);
  }
  out.start_unix_ns = reader.number(look, "look", "start_unix_ns");
  if (const Json* const nics = reader.member(look, "look", "nics", Json::value_t::array)) {
    for (std::size_t i = 0; i < nics->size() && reader.good(); ++i) {
      out.nics.push_back(reader.nic((*nics)[i], fmt::format("look.nics[{}]", i)));
    }
  }
  return reader.error();
}

std::string gid_text(const std::array<std::uint8_t, 16>& gid) {
  if (std::all_of(gid.begin(), gid.end(), [](std::uint8_t byte) { return byte == 0; })) return {};
  std::array<char, INET6_ADDRSTRLEN> text{};
  return ::inet_ntop(AF_INET6, gid.data(), text.data(), text.size()) == nullptr ? "" : text.data();
}

}  // namespace paceline::looks
