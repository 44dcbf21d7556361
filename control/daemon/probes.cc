#include "control/daemon/probes.h"

#include <fmt/format.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <optional>
#include <utility>

namespace paceline::daemon {

namespace asio = boost::asio;
using asio::awaitable;

namespace {

constexpr auto kConnectTurn = std::chrono::milliseconds(5);
constexpr int kConnectTurns = 400;
constexpr double kMostSeconds = 3700;  // an hour of `paceline mesh`, and what surrounds it

// It continues until the client is stopped, whoever else holds it.
awaitable<void> keep_connected(std::shared_ptr<ControlClient> client) { co_await client->run(); }

Endpoint probe_endpoint(std::string method, std::string summary, std::string answer) {
  Endpoint out;
  out.method = std::move(method);
  out.path = "/v1/probes";
  out.tag = "probes";
  out.summary = std::move(summary);
  out.answer = std::move(answer);
  out.writes = out.method != "GET";
  return out;
}

}  // namespace

Probes::Probes(asio::io_context& context, ControlSettings service)
    : context_(context), service_(std::move(service)), until_(context) {}

awaitable<bool> Probes::connect(Client client) {
  asio::co_spawn(context_, keep_connected(client), asio::detached);
  asio::steady_timer turn(context_);
  for (int i = 0; i < kConnectTurns && !client->connected() && !client->stopped(); ++i) {
    boost::system::error_code error;
    turn.expires_after(kConnectTurn);
    co_await turn.async_wait(asio::redirect_error(asio::use_awaitable, error));
  }
  co_return client->connected();
}

awaitable<Reply> Probes::ask(Client client, std::string op, Json members) {
  ControlAnswer answer = co_await client->call(std::move(op), std::move(members));
  if (answer.kind == ControlAnswer::Kind::refused) co_return refusal(409, answer.errors);
  if (!answer.ok()) co_return refusal(503, answer.errors);
  std::string wrong;
  const std::optional<Json> body = whole_body(std::move(answer), wrong);
  if (!body) co_return refusal(503, {wrong});
  Reply reply;
  for (const char* const member : {"nics", "interval_us"}) {
    if (body->contains(member)) reply.body[member] = body->at(member);
  }
  co_return reply;
}

awaitable<Reply> Probes::open(std::string who, Json body) {
  if (client_) {
    co_return refusal(409, {fmt::format("{} probes already; DELETE /v1/probes ends that", who_)});
  }
  const Client client = std::make_shared<ControlClient>(context_, service_);
  client_ = client;
  who_ = std::move(who);
  const auto seconds = std::chrono::duration<double>(body.value("seconds", 0.0));
  until_.expires_after(std::chrono::duration_cast<std::chrono::nanoseconds>(seconds));
  until_.async_wait([this, client](const boost::system::error_code& error) {
    if (!error && client_ == client) end();
  });
  const bool connected = co_await connect(client);
  Reply reply = refusal(503, {client->trouble().empty() ? "no service" : client->trouble()});
  if (connected) {
    Json members = Json::object();
    reply = co_await ask(client, "probe_open", std::move(members));
  }
  if (reply.status >= 400 && client_ == client) end();
  co_return reply;
}

awaitable<Reply> Probes::begin(Json body) {
  if (!client_) co_return refusal(409, {"nothing is open: POST /v1/probes comes first"});
  co_return co_await ask(client_, "probe_begin", std::move(body));
}

awaitable<Reply> Probes::figures() {
  if (!client_) co_return refusal(409, {"no probes are running: POST /v1/probes comes first"});
  Json members = Json::object();
  co_return co_await ask(client_, "probes", std::move(members));
}

Reply Probes::end() {
  if (client_) client_->stop();
  client_.reset();
  until_.cancel();
  return {};
}

void Probes::stop() { end(); }

void add_probe_endpoints(Endpoints& endpoints, Probes& probes) {
  Endpoint open =
      probe_endpoint("POST", "Open what NICs probe and answer by",
                     "nics: name, address, qp_number, qkey; 409 if probes are running already");
  open.body = {
      {"seconds", FieldType::number, true, "after so long it ends by itself", {}, 1, kMostSeconds}};
  open.handle = [&probes](Request request) -> awaitable<Reply> {
    co_return co_await probes.open(request.caller.name, request.body);
  };
  endpoints.add(std::move(open));

  Endpoint begin = probe_endpoint("PUT", "Probe these, of this host and of others",
                                  "interval_us between two probes of the NIC that probes least");
  const std::vector<Field> peer{{"address", FieldType::text, true, "IPv4 or IPv6"},
                                {"qp_number", FieldType::whole, true, "", {}, 1, 16'777'215},
                                {"qkey", FieldType::whole, true, "", {}, 0, 2'147'483'647}};
  Field peers{"peers", FieldType::list, true, "as POST of their hosts has them", {}, 1, 512};
  peers.of = {{"", FieldType::object, true, "", {}, 0, 0, peer}};
  begin.body = {
      {"session", FieldType::whole, true, "the same at all hosts", {}, 0, 2'147'483'647},
      std::move(peers),
      {"rate", FieldType::number, false, "probes a second of a pair, at most", {}, 0.01, 1e5},
      {"share", FieldType::number, false, "of a link's rate, at most", {}, 1e-9, 0.01},
      {"paths", FieldType::whole, false, "UDP source ports in turn", {}, 1, 64},
      {"class", FieldType::whole, false, "traffic class that is measured", {}, 0, 6}};
  begin.handle = [&probes](Request request) -> awaitable<Reply> {
    co_return co_await probes.begin(request.body);
  };
  endpoints.add(std::move(begin));

  Endpoint figures =
      probe_endpoint("GET", "What came of probing so far",
                     "nics: name, clock, peers: answered, lost, fabric_ns, host_ns, paths");
  figures.handle = [&probes](Request) -> awaitable<Reply> { co_return co_await probes.figures(); };
  endpoints.add(std::move(figures));

  Endpoint end = probe_endpoint("DELETE", "End probing", "nothing");
  end.handle = [&probes](Request) -> awaitable<Reply> { co_return probes.end(); };
  endpoints.add(std::move(end));
}

}  // namespace paceline::daemon
