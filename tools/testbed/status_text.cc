#include "tools/testbed/status_text.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "dataplane/attach/text.h"
#include "dataplane/base/text/printable.h"
#include "dataplane/wire/headers/addresses.h"

namespace paceline::tools {

namespace {

using Json = nlohmann::json;

constexpr const char* kNoStatus = "the answer is not a status";

std::uint64_t number(const Json& in, const char* key) {
  const auto at = in.find(key);
  return at != in.end() && at->is_number() ? at->get<std::uint64_t>() : 0;
}
std::string word(const Json& in, const char* key) {
  const auto at = in.find(key);
  return at != in.end() && at->is_string() ? printable(at->get<std::string>()) : "";
}
// The list at `key`, or an empty list.
const Json& list(const Json& in, const char* key) {
  static const Json kNone = Json::array();
  const auto at = in.find(key);
  return at != in.end() && at->is_array() ? *at : kNone;
}

// "3 buffer, 5 loss" of a member {"buffer": 3, "loss": 5, "ttl": 0}; "": all are 0.
std::string reasons(const Json& in, const char* key) {
  std::string text;
  const auto all = in.find(key);
  if (all == in.end() || !all->is_object()) return text;
  for (const auto& [reason, packets] : all->items()) {
    if (!packets.is_number() || packets.get<std::uint64_t>() == 0) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", packets.get<std::uint64_t>(),
                        printable(reason));
  }
  return text;
}

void add_fabric(std::string& text, const Json& set) {
  const auto at = set.find("fabric");
  if (at == set.end() || !at->is_object()) return;
  const Json& fabric = *at;
  text += fmt::format(
      "\nfabric     {} packets in, {} delivered, {} marked, {} pauses; algorithm {}\n",
      number(fabric, "injected_packets"), number(fabric, "delivered_packets"),
      number(fabric, "marked_packets"), number(fabric, "pause_frames"), word(set, "algorithm"));
  const std::string drops = reasons(fabric, "drops");
  text += fmt::format("drops      {}\n", drops.empty() ? "none" : drops);
  text += fmt::format("{:<20} {:>10} {:>10} {:>10} {:>12} {:>9} {:>8} {:>10}\n", "queue", "now",
                      "most", "mean", "packets", "marked", "drops", "paused us");
  for (const Json& queue : list(fabric, "queues")) {
    text += fmt::format(
        "{:<20} {:>10} {:>10} {:>10} {:>12} {:>9} {:>8} {:>10}\n",
        word(queue, "from") + " > " + word(queue, "to"), number(queue, "queued_bytes"),
        number(queue, "most_bytes"), number(queue, "mean_bytes"), number(queue, "packets"),
        number(queue, "marked"), number(queue, "drops"), number(queue, "paused_us"));
  }
}

// "h0.1, h0.3", as faults name them; of a NIC with one port "its port"; empty: all have a link.
std::string ports_down(const Json& nic) {
  const Json& up = list(nic, "ports_up");
  std::string text;
  for (std::size_t port = 0; port < up.size(); ++port) {
    if (up[port] != false) continue;
    text += fmt::format("{}{}.{}", text.empty() ? "" : ", ", word(nic, "name"), port);
  }
  if (up.empty() && nic.value("up", Json(true)) == false) text = "its port";
  return text;
}

void add_nics(std::string& text, const Json& set) {
  text +=
      fmt::format("\n{:<12} {:>12} {:>16} {:>12} {:>16} {:>8} {:>8} {:>8}\n", "nic", "tx packets",
                  "tx bytes", "rx packets", "rx bytes", "marked", "resent", "cnps");
  for (const Json& nic : list(set, "nics")) {
    const Json counters = nic.value("counters", Json::object());
    text +=
        fmt::format("{:<12} {:>12} {:>16} {:>12} {:>16} {:>8} {:>8} {:>8}\n", word(nic, "name"),
                    number(counters, "tx_data_packets"), number(counters, "tx_data_bytes"),
                    number(counters, "rx_data_packets"), number(counters, "rx_data_bytes"),
                    number(counters, "rx_ce_packets"), number(counters, "retransmitted_packets"),
                    number(counters, "cnps_received"));
    if (nic.value("gone", Json(false)) == true) {
      text += fmt::format("{:<12} taken away (paceline testbed remove)\n", "");
    } else if (const std::string down = ports_down(nic); !down.empty()) {
      text += fmt::format("{:<12} without a link: {}\n", "", down);
    }
    if (const std::string why = reasons(nic, "undelivered"); !why.empty()) {
      text += fmt::format("{:<12} received and not delivered: {}\n", "", why);
    }
  }
}

// A capture costs the worker a copy of each frame, so the status shows it.
void add_captures(std::string& text, const Json& set) {
  for (const Json& nic : list(set, "nics")) {
    const auto at = nic.find("capture");
    if (at == nic.end() || !at->is_object()) continue;
    text += fmt::format("{:<12} is being captured: {} frames, {} of them missed\n",
                        word(nic, "name"), number(*at, "frames"), number(*at, "missed"));
  }
}

// Counters of devices.
void add_devices(std::string& text, const Json& set) {
  for (const Json& nic : list(set, "nics")) {
    const auto at = nic.find("port");
    if (at == nic.end() || !at->is_object()) continue;
    const Json arrivals = at->value("arrivals", Json::object());
    text += fmt::format("{:<12} missed {}, no buffer {}, errors {} in, {} out; pause {}",
                        word(nic, "name"), number(*at, "rx_missed"), number(*at, "rx_no_buffer"),
                        number(*at, "rx_errors"), number(*at, "tx_errors"),
                        word(*at, "pause").empty() ? "unknown" : word(*at, "pause"));
    if (const auto frames = at->find("pause_frames"); frames != at->end() && frames->is_object()) {
      text += fmt::format(", frames {} in, {} out",
                          number(*frames, "received") + number(*frames, "priority_received"),
                          number(*frames, "sent") + number(*frames, "priority_sent"));
    }
    const Json loans = at->value("loans", Json::object());
    text += fmt::format("; lent {} sent, {} copied, {} recalled, {} overdue, {} received",
                        number(loans, "sent"), number(loans, "copied"), number(loans, "recalled"),
                        number(loans, "overdue"), number(loans, "received"));
    text += fmt::format("; arrivals by the {}\n",
                        word(arrivals, "clock") == "device" ? "device's clock" : "poll");
  }
}

}  // namespace

std::string nics_text(std::span<const attach::NicInfo> nics) {
  std::string text =
      fmt::format("{:<12} {:<16} {:<24} {:>12} {:>6}\n", "nic", "GID 0", "GID 1", "rate", "mtu");
  for (const attach::NicInfo& nic : nics) {
    const auto gid = [&](std::uint32_t port, std::size_t i) {
      return nic.gid_kinds[i] == attach::GidKind::none
                 ? std::string("-")
                 : wire::to_text(wire::IpAddress{attach::gid_of(nic, port, i)});
    };
    const std::string rate =
        nic.rate_mbps == 0 ? "unlimited"
                           : fmt::format("{:g} Gb/s", static_cast<double>(nic.rate_mbps) / 1000);
    text += fmt::format("{:<12} {:<16} {:<24} {:>12} {:>6}\n", printable(attach::text_of(nic.name)),
                        gid(1, 0), gid(1, 1), rate, nic.mtu);
    for (std::uint32_t port = 2; port <= attach::ports_of(nic); ++port) {
      text += fmt::format("{:<12} {:<16} {}\n", fmt::format("  port {}", port), gid(port, 0),
                          gid(port, 1));
    }
  }
  return text;
}

namespace {

std::uint64_t used(const Json& in, const char* key) {
  const auto at = in.find(key);
  return at != in.end() && at->is_object() ? number(*at, "used") : 0;
}

// "3.2 s"
std::string seconds_text(double micros) { return fmt::format("{:.1f} s", micros * 1e-6); }

void add_faults(std::string& text, const Json& status) {
  for (const Json& fault : list(status, "faults")) {
    text += fmt::format("\nfault      {} {}", word(fault, "target"), word(fault, "action"));
    for (const char* value : {"rate_mbps", "delay_ns", "probability", "severity", "seed"}) {
      const auto at = fault.find(value);
      if (at == fault.end() || !at->is_number()) continue;
      text += fmt::format(", {} {:g}", value, at->get<double>());
    }
    if (!word(fault, "direction").empty()) text += ", " + word(fault, "direction");
    if (fault.value("in_force", Json(true)) == false) {
      text += ", begins in " + seconds_text(fault.value("begins_us", 0.0));
    }
    const auto ends = fault.find("ends_us");
    if (ends != fault.end() && ends->is_number()) {
      text += ", ends in " + seconds_text(ends->get<double>());
    }
  }
  if (!list(status, "faults").empty()) text += "\n";
}

void add_messages(std::string& text, const Json& status) {
  const std::string counts = reasons(status, "management");
  if (!counts.empty()) text += fmt::format("\nmessages   of rdma_cm, other machines: {}\n", counts);
}

void add_programs(std::string& text, const Json& status) {
  const Json& sessions = list(status, "sessions");
  if (sessions.empty()) {
    text += "\nprograms   none\n";
    return;
  }
  text += fmt::format("\n{:<8} {:<20} {:<12} {:>6} {:>6} {:>8} {:>14} {:>14} {:>14}\n", "process",
                      "program", "nic", "pairs", "cqs", "regions", "messages", "shared bytes",
                      "copied bytes");
  for (const Json& session : sessions) {
    const Json memory = session.value("memory", Json::object());
    text += fmt::format("{:<8} {:<20} {:<12} {:>6} {:>6} {:>8} {:>14} {:>14} {:>14}\n",
                        number(session, "pid"), word(session, "program"),
                        session.contains("cm") ? "rdma_cm" : word(session, "nic"),
                        number(session, "queue_pairs"), number(session, "completion_queues"),
                        number(session, "regions"), number(session, "messages"),
                        number(memory, "shared_bytes"), number(memory, "copied_bytes"));
  }
  for (const Json& tenant : list(status, "tenants")) {
    text += fmt::format("user {}: {} queue pairs, {} regions, {} bytes registered\n",
                        number(tenant, "user"), used(tenant, "queue_pairs"),
                        used(tenant, "regions"), used(tenant, "registered_bytes"));
  }
}

}  // namespace

StatusText status_json(const std::string& json) {
  const Json status = Json::parse(json, nullptr, false);
  if (!status.is_object()) return {{}, kNoStatus};
  return {status.dump(-1, ' ', true) + "\n", {}};
}

StatusText status_text(const std::string& json) {
  const Json status = Json::parse(json, nullptr, false);
  if (!status.is_object()) return {{}, kNoStatus};
  StatusText out;
  for (const Json& set : list(status, "workers")) {
    add_nics(out.text, set);
    add_devices(out.text, set);
    add_captures(out.text, set);
    add_fabric(out.text, set);
  }
  add_faults(out.text, status);
  add_messages(out.text, status);
  add_programs(out.text, status);
  return out;
}

}  // namespace paceline::tools
