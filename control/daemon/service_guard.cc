#include "control/daemon/service_guard.h"

#include <utility>

namespace paceline::daemon {

using boost::asio::awaitable;

awaitable<Json> ServiceGuard::trips(std::string nic) {
  Json members = Json::object();
  const ControlAnswer answer = co_await service_.call("guard", std::move(members));
  Json out = Json::array();
  for (const Json& entry : answer.body.value("nics", Json::array())) {
    if (!entry.is_object() || entry.value("name", std::string()) != nic) continue;
    for (const Json& trip : entry.value("trips", Json::array())) {
      if (trip.is_object()) out.push_back(trip);
    }
  }
  co_return out;
}

awaitable<Json> ServiceGuard::trip(std::string nic, std::uint32_t number) {
  Json out;
  for (const Json& trip : co_await trips(std::move(nic))) {
    if (trip.value("number", 0U) == number) out = trip;
  }
  co_return out;
}

awaitable<std::optional<std::string>> ServiceGuard::quarantine(std::string nic) {
  std::optional<std::string> out;
  for (const Json& trip : co_await trips(std::move(nic))) {
    if (trip.value("rule", std::string()) == "plugin_quarantine") {
      out = trip.value("detail", std::string());
    }
  }
  co_return out;
}

awaitable<Reply> ServiceGuard::show() {
  Json members = Json::object();
  const ControlAnswer answer = co_await service_.call("guard", std::move(members));
  if (!answer.ok()) co_return refusal(503, answer.errors);
  Reply reply;
  reply.body["nics"] = answer.body.value("nics", Json::array());
  co_return reply;
}

awaitable<Reply> ServiceGuard::clear(Json body) {
  Json members = Json::object();
  if (body.contains("nics")) members["nics"] = body["nics"];
  const ControlAnswer answer = co_await service_.call("clear_guard", std::move(members));
  if (answer.kind == ControlAnswer::Kind::refused) co_return refusal(409, answer.errors);
  if (!answer.ok()) co_return refusal(503, answer.errors);
  co_return Reply{};
}

void add_guard_endpoints(Endpoints& endpoints, ServiceGuard& guard,
                         std::function<void(std::string_view topic, Json data)> tell) {
  Endpoint show;
  show.method = "GET";
  show.path = "/v1/guard";
  show.tag = "guard";
  show.summary = "Limits of the guard, and its trips";
  show.answer = "nics: limits, trips, latched";
  show.handle = [&guard](Request) -> awaitable<Reply> { co_return co_await guard.show(); };
  endpoints.add(std::move(show));

  Endpoint clear;
  clear.method = "DELETE";
  clear.path = "/v1/guard";
  clear.tag = "guard";
  clear.summary = "Release the latch, so that trials are allowed again";
  clear.answer = "nothing";
  clear.writes = true;
  clear.body = {{"nics", FieldType::list, false, "names of NICs; absent: all"},
                {"why", FieldType::text, false, "the reason, for the journal"}};
  clear.handle = [&guard, tell = std::move(tell)](Request request) -> awaitable<Reply> {
    Reply reply = co_await guard.clear(request.body);
    if (reply.status != 200) co_return reply;
    tell("guard", Json{{"event", "clear"},
                       {"who", request.caller.name},
                       {"why", request.body.value("why", std::string())},
                       {"nics", request.body.value("nics", Json("all"))}});
    co_return reply;
  };
  endpoints.add(std::move(clear));
}

}  // namespace paceline::daemon
