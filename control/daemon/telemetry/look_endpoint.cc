#include "control/daemon/telemetry/look_endpoint.h"

#include <string>
#include <utility>

#include "control/looks/look_json.h"

namespace paceline::daemon {

using boost::asio::awaitable;

namespace {

// Combines status and telemetry. Returns why there is no look, or an empty text.
std::string look_at(const Sampler& sampler, const Json& status, looks::SeenHost& out) {
  if (!sampler.is_open()) return "there is no telemetry of the service";
  out.start_unix_ns = sampler.header().service_start_unix_ns;
  for (std::size_t nic = 0; nic < sampler.nics().size(); ++nic) {
    looks::SeenNic& seen = out.nics.emplace_back();
    seen.name = sampler.nics()[nic].name;
    seen.rate_bps = sampler.nics()[nic].rate_bps;
    seen.queue_pairs = sampler.queue_pairs(nic);
  }
  return looks::add_status(status, out.nics);
}

awaitable<Reply> look_reply(const Sampler& sampler, ControlClient& service, const Clock& clock) {
  Json members = Json::object();
  ControlAnswer answer = co_await service.call("status", std::move(members));
  if (!answer.ok()) co_return refusal(503, answer.errors);
  std::string wrong;
  const bool brief = answer.body.contains("status");
  const auto body = whole_body(std::move(answer), wrong);
  looks::SeenHost host;
  if (body) wrong = look_at(sampler, brief ? body->at("status") : *body, host);
  if (!wrong.empty()) co_return refusal(503, {wrong});
  Reply reply;
  reply.body = looks::look_json(host);
  reply.body["at_unix_ns"] = clock.unix_ns();
  co_return reply;
}

}  // namespace

void add_look_endpoint(Endpoints& endpoints, const Sampler& sampler, ControlClient& service,
                       const Clock& clock) {
  Endpoint look;
  look.method = "GET";
  look.path = "/v1/look";
  look.tag = "telemetry";
  look.summary = "All NICs as they are now, with the counters of queue pairs that have sent";
  look.answer =
      "start_unix_ns of the service; nics: name, rate_bps, emulated, status (what the service says "
      "of it: addresses, up, counters), queue_pairs: peer, counters, limited_ns by limiter, what "
      "is 0 left out; at most 2048 of a NIC";
  look.handle = [&](Request) -> awaitable<Reply> {
    co_return co_await look_reply(sampler, service, clock);
  };
  endpoints.add(std::move(look));
}

}  // namespace paceline::daemon
