#include "control/daemon/telemetry/telemetry_endpoints.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "control/daemon/telemetry/explain.h"
#include "control/daemon/telemetry/telemetry_json.h"
#include "dataplane/base/text/comma_list.h"

namespace paceline::daemon {

using boost::asio::awaitable;

namespace {

// Cells of one answer: some megabytes of text.
constexpr std::size_t kMostCells = 200'000;
constexpr double kUsualReach = 60;      // seconds
constexpr std::size_t kMostNamed = 16;  // queue pairs in a refusal
constexpr double kFarFuture = 4e9;      // Unix seconds

Field nic_in_path() { return {"nic", FieldType::text, true, "name of the NIC"}; }
Field nic_in_query() { return {"nic", FieldType::text, true, "name of the NIC"}; }

Reply no_nic(std::string_view name) {
  return refusal(404, {fmt::format("there is no NIC \"{}\"; see /v1/nics", name)});
}

Reply nics_reply(const Sampler& sampler, std::int64_t now) {
  Json nics = Json::array();
  for (std::size_t nic = 0; nic < sampler.nics().size(); ++nic) {
    nics.push_back(nic_summary(sampler, nic, now));
  }
  Reply reply;
  reply.body["nics"] = std::move(nics);
  return reply;
}

Reply queue_pairs_reply(const Sampler& sampler, std::size_t nic) {
  Json pairs = Json::array();
  for (const telemetry::QueuePairRecord& record : sampler.queue_pairs(nic)) {
    pairs.push_back(queue_pair_json(record));
  }
  Reply reply;
  reply.body["queue_pairs"] = std::move(pairs);
  return reply;
}

std::vector<std::size_t> named_series(const Sampler& sampler, std::string_view names,
                                      std::vector<std::string>& errors) {
  std::vector<std::size_t> out;
  if (names.empty()) {
    errors.emplace_back("names: at least one is needed");
    return out;
  }
  for (const std::string_view name : comma_list(names)) {
    if (const auto index = sampler.find_series(name)) {
      out.push_back(*index);
    } else {
      errors.push_back(fmt::format("names: there is no series \"{}\"; see /v1/catalogue", name));
    }
  }
  return out;
}

Reply series_reply(const Sampler& sampler, const Request& request, std::int64_t now) {
  const std::string name = request.in_query("nic");
  const auto nic = sampler.find_nic(name);
  if (!nic) return no_nic(name);
  std::vector<std::string> errors;
  const std::vector<std::size_t> names = named_series(sampler, request.in_query("names"), errors);
  // Seconds of Unix time; not positive: before now.
  const auto moment = [&](std::string_view field, double otherwise) {
    const double seconds = request.number_in_query(field, otherwise);
    const auto ns = static_cast<std::int64_t>(std::llround(seconds * 1e9));
    return seconds <= 0 ? now + ns : ns;
  };
  const History& history = sampler.history(*nic);
  const auto [slot_ns, span_ns] = history.span();
  const double reach = static_cast<double>(span_ns) / 1e9;
  const std::int64_t from = moment("from", -std::min(kUsualReach, reach));
  const std::int64_t to = moment("to", 0);
  if (from >= to) errors.emplace_back("from: must be before to");
  if (from < now - span_ns) {
    errors.push_back(fmt::format(
        "query.from: \"{}\"; allowed: at most {} s before now, as far as the history reaches "
        "(telemetry.fine_span); Prometheus keeps longer ones of /metrics",
        request.in_query("from"), reach));
  }
  if (!errors.empty()) return refusal(400, errors);
  const auto slots = static_cast<std::size_t>((to - from) / slot_ns);
  if (slots > kMostCells / names.size()) {
    return refusal(400, {fmt::format("{} series over {} slots are too much for one answer, at most "
                                     "{} values: ask for fewer series or a shorter span",
                                     names.size(), slots, kMostCells)});
  }
  Reply reply;
  reply.body = history_json(history.part(from, to, names));
  reply.body["nic"] = name;
  reply.body["resolution"] = "fine";
  return reply;
}

Reply explain_reply(const Sampler& sampler, const Request& request) {
  const std::string name = request.in_query("nic");
  const auto nic = sampler.find_nic(name);
  if (!nic) return no_nic(name);
  const auto number = static_cast<std::uint32_t>(request.number_in_query("qp", 0));
  const std::vector<QueuePairLook> looks =
      sampler.queue_pair_history().looks(static_cast<std::uint32_t>(*nic), number);
  if (looks.empty()) {
    const std::vector<std::uint32_t> there =
        sampler.queue_pair_history().numbers(static_cast<std::uint32_t>(*nic));
    const std::size_t named = std::min(there.size(), kMostNamed);
    std::string others = "it has none";
    if (named != 0) {
      others = fmt::format("there {} {}{}", there.size() == 1 ? "is" : "are",
                           fmt::join(there.begin(), there.begin() + static_cast<long>(named), ", "),
                           there.size() > named ? " and others" : "");
    }
    return refusal(404, {fmt::format("NIC {} has no queue pair {} that is followed; {}", name,
                                     number, others)});
  }
  Reply reply;
  reply.body = explanation_json(
      explain(looks, request.number_in_query("seconds", 10), sampler.nics()[*nic].rate_bps));
  reply.body["nic"] = name;
  reply.body["queue_pair"] = queue_pair_json(looks.back().record);
  return reply;
}

Reply catalogue_reply(const Sampler& sampler) {
  Json series = Json::array();
  for (const SeriesInfo& s : sampler.series()) {
    series.push_back({{"name", s.name},
                      {"unit", s.unit},
                      {"kind", s.kind == telemetry::SeriesKind::gauge ? "gauge" : "counter"},
                      {"metric", metric_name(s)}});
  }
  Reply reply;
  reply.body["series"] = std::move(series);
  return reply;
}

Endpoint reading(std::string path, std::string summary, std::string answer) {
  Endpoint endpoint;
  endpoint.method = "GET";
  endpoint.path = std::move(path);
  endpoint.summary = std::move(summary);
  endpoint.tag = "telemetry";
  endpoint.answer = std::move(answer);
  return endpoint;
}

}  // namespace

void add_telemetry_endpoints(Endpoints& endpoints, const Sampler& sampler, const Clock& clock,
                             std::function<DaemonFigures()> figures) {
  Endpoint nics = reading("/v1/nics", "All NICs: rates, parameters in force, state of telemetry",
                          "nics: name, link_gbps, telemetry, algorithm, generation, tx_gbps, ...");
  nics.handle = [&](Request) -> awaitable<Reply> {
    co_return nics_reply(sampler, clock.unix_ns());
  };
  endpoints.add(std::move(nics));

  Endpoint nic = reading("/v1/nics/{nic}", "One NIC with the latest value of every series",
                         "as of /v1/nics, and values by name");
  nic.path_fields = {nic_in_path()};
  nic.handle = [&](Request request) -> awaitable<Reply> {
    const auto at = sampler.find_nic(request.in_path("nic"));
    if (!at) co_return no_nic(request.in_path("nic"));
    Reply reply;
    reply.body = nic_details(sampler, *at, clock.unix_ns());
    co_return reply;
  };
  endpoints.add(std::move(nic));

  Endpoint pairs =
      reading("/v1/nics/{nic}/queue_pairs", "The queue pairs of a NIC as last looked at",
              "queue_pairs: number, peer, limiter, rate_gbps, srtt_ns, counters");
  pairs.path_fields = {nic_in_path()};
  pairs.handle = [&](Request request) -> awaitable<Reply> {
    const auto at = sampler.find_nic(request.in_path("nic"));
    if (!at) co_return no_nic(request.in_path("nic"));
    co_return queue_pairs_reply(sampler, *at);
  };
  endpoints.add(std::move(pairs));

  Endpoint catalogue = reading("/v1/catalogue", "Names, units and kinds of all series",
                               "series: name, unit, kind, and metric, its name in /metrics");
  catalogue.handle = [&](Request) -> awaitable<Reply> { co_return catalogue_reply(sampler); };
  endpoints.add(std::move(catalogue));

  Endpoint series =
      reading("/v1/series", "History of series of a NIC",
              "from_unix_ns, slot_ns, slots, and of each series its values: growth in "
              "each slot, or the last level (and the highest); null: not known");
  series.query = {nic_in_query(),
                  {"names", FieldType::text, true, "names, with commas between; see /v1/catalogue"},
                  {"from",
                   FieldType::number,
                   false,
                   "Unix time in s; 0 and less: before now. By default -60. What is older than the "
                   "history is refused",
                   {},
                   -1e8,
                   kFarFuture},
                  {"to", FieldType::number, false, "likewise; by default 0", {}, -1e8, kFarFuture},
                  {"resolution",
                   FieldType::text,
                   false,
                   "fine: slots of telemetry.interval, the only ones there are; also the default",
                   {"fine", "auto"}}};
  series.handle = [&](Request request) -> awaitable<Reply> {
    co_return series_reply(sampler, request, clock.unix_ns());
  };
  endpoints.add(std::move(series));

  Endpoint explains = reading("/v1/explain", "What bounded a connection, in words",
                              "verdict, findings: what, share and sentence; shares by limiter");
  explains.query = {nic_in_query(),
                    {"qp", FieldType::whole, true, "number of the queue pair", {}, 1, 16'777'215},
                    {"seconds", FieldType::number, false, "so far back; by default 10", {}, 1, 60}};
  explains.handle = [&](Request request) -> awaitable<Reply> {
    co_return explain_reply(sampler, request);
  };
  endpoints.add(std::move(explains));

  Endpoint metrics = reading("/metrics", "All figures as Prometheus reads them", "text, not JSON");
  metrics.handle = [&sampler, figures = std::move(figures)](Request) -> awaitable<Reply> {
    Reply reply;
    reply.text = metrics_text(sampler, figures());
    reply.content_type = kMetricsType;
    co_return reply;
  };
  endpoints.add(std::move(metrics));
}

}  // namespace paceline::daemon
