#include "cc/registry.h"

#include <set>

#include "cc/dispatch.h"
#include "cc_support.h"

using namespace paceline;
using namespace paceline::cc;
using namespace paceline::cc::test;

TEST_CASE("registry: names and ids find their algorithm, in the order of AlgorithmId") {
  const auto all = algorithms();
  REQUIRE(all.size() == kAlgorithms);
  for (std::size_t i = 0; i < all.size(); ++i) {
    CHECK(static_cast<std::size_t>(all[i].id) == i);
    CHECK(find(all[i].name) == &all[i]);
    CHECK(find(all[i].id) == &all[i]);
    CHECK_FALSE(all[i].summary.empty());
  }
  CHECK(find("fixed")->id == AlgorithmId::fixed);
  CHECK(find("dcqcn")->id == AlgorithmId::dcqcn);
  CHECK(find("cadence")->id == AlgorithmId::cadence);
  CHECK(find("swift")->id == AlgorithmId::swift);
  CHECK(find("timely")->id == AlgorithmId::timely);
  CHECK(find("dctcp")->id == AlgorithmId::dctcp);
  CHECK(find("theta-powertcp")->id == AlgorithmId::theta_powertcp);
  CHECK(find("nscc")->id == AlgorithmId::nscc);
  CHECK(find("hpcc")->id == AlgorithmId::hpcc);
  CHECK(find("powertcp")->id == AlgorithmId::powertcp);
  CHECK(find("eqds")->id == AlgorithmId::eqds);
  CHECK(find("sird")->id == AlgorithmId::sird);
  CHECK(find("homa")->id == AlgorithmId::homa);
  CHECK(find("switch-notified")->id == AlgorithmId::switch_notified);
  CHECK(find(static_cast<AlgorithmId>(kAlgorithms)) == nullptr);
  CHECK(find("DCQCN") == nullptr);
  CHECK(find("") == nullptr);
  CHECK(nearest_algorithm("dcqn") == "dcqcn");
}

TEST_CASE("registry: every table is sound") {
  for (const AlgorithmInfo& info : algorithms()) {
    CAPTURE(info.name);
    std::set<std::string_view> names;
    for (const ParamSpec& spec : info.params) {
      CAPTURE(spec.name);
      CHECK(names.insert(spec.name).second);
      CHECK(spec.min <= spec.default_value);
      CHECK(spec.default_value <= spec.max);
      CHECK_FALSE(spec.unit.empty());
      CHECK_FALSE(spec.meaning.empty());
      CHECK_FALSE(spec.source.empty());
    }
    std::set<std::string_view> profiles{kDefaultProfile};
    for (const Profile& profile : info.profiles) {
      CAPTURE(profile.name);
      CHECK(profiles.insert(profile.name).second);
      CHECK_FALSE(profile.source.empty());
      std::set<std::string_view> set_by_profile;
      for (const ProfileValue& value : profile.values) {
        CAPTURE(value.name);
        CHECK(find_param(info.params, value.name) >= 0);
        CHECK(set_by_profile.insert(value.name).second);
      }
      // Usable on every link an operator has.
      for (const std::uint64_t gbps : {1U, 10U, 25U, 40U, 100U, 200U, 400U, 800U}) {
        values_of(info.name, profile.name, {}, facts_at(gbps));
      }
    }
    values_of(info.name, kDefaultProfile, {}, facts_at(1));
  }
}

TEST_CASE("dispatch: the same answer as calling the algorithm") {
  const PortFacts facts = facts_at(100);
  const auto values = values_of("dcqcn", "paper", {}, facts);
  const ParamBlock block = make_param_block(AlgorithmId::dcqcn, values, facts);
  CHECK(block.id == AlgorithmId::dcqcn);
  const Dcqcn::Params params = Dcqcn::make_params(values, facts);

  alignas(kStateAlignment) std::byte bytes[kStateBytes];
  std::memset(bytes, 0xA5, sizeof bytes);  // what another algorithm left behind
  Dcqcn::State state;
  Event event;
  Decision by_dispatch, by_call;
  start_state(AlgorithmId::dcqcn, bytes, block, event, by_dispatch);
  Dcqcn::on_event(state, params, event, by_call);
  CHECK(by_dispatch.rate == rate_from_gbps(100));
  event.signal = Signal::cnp;
  for (int i = 1; i <= 100; ++i) {
    event.now = Nanos{i * 37'000};
    event.sent_bytes = static_cast<std::uint64_t>(i) * 100'000;
    dispatch(AlgorithmId::dcqcn, bytes, block, event, by_dispatch);
    Dcqcn::on_event(state, params, event, by_call);
    REQUIRE(by_dispatch.rate == by_call.rate);
    REQUIRE(by_dispatch.wake_at == by_call.wake_at);
    REQUIRE(by_dispatch.wake_bytes == by_call.wake_bytes);
  }
  CHECK(by_call.rate < rate_from_gbps(100));
  CHECK(std::memcmp(bytes, &state, sizeof state) == 0);
}

TEST_CASE("dispatch: a start leaves nothing of the state's former owner") {
  const PortFacts facts = facts_at(100);
  const ParamBlock block =
      make_param_block(AlgorithmId::fixed, values_of("fixed", "", {}, facts), facts);
  alignas(kStateAlignment) std::byte bytes[kStateBytes];
  std::memset(bytes, 0xA5, sizeof bytes);
  Decision decision;
  decision.request = true;
  decision.ceiling = 1;
  start_state(AlgorithmId::fixed, bytes, block, Event{}, decision);
  for (std::size_t i = sizeof(Fixed::State); i < kStateBytes; ++i)
    REQUIRE(bytes[i] == std::byte{0});
  CHECK(decision.rate == rate_from_gbps(100));
  CHECK_FALSE(decision.request);
  CHECK(decision.ceiling == kUnlimited);
}

TEST_CASE("dispatch: proactive algorithms fill their request") {
  PortFacts facts = facts_at(100);
  facts.full_packet_bytes = 4096 + 78;
  facts.base_rtt_ns = 8'000;
  const ParamBlock block =
      make_param_block(AlgorithmId::cadence, values_of("cadence", "", {}, facts), facts);
  alignas(kStateAlignment) std::byte bytes[kStateBytes];
  Decision decision;
  Event event;
  event.now = Nanos{1'000};
  start_state(AlgorithmId::cadence, bytes, block, event, decision);
  event.signal = Signal::message;
  event.message_bytes = event.backlog_bytes = 10'000'000;
  dispatch(AlgorithmId::cadence, bytes, block, event, decision);
  RequestMessage message;
  REQUIRE(fill_request(AlgorithmId::cadence, bytes, block, event, decision, message));
  CHECK(message.demand_bytes >= 10'000'000);
}

TEST_CASE("dispatch: reactive algorithms fill no request") {
  const PortFacts facts = facts_at(100);
  RequestMessage message;
  for (const AlgorithmInfo& info : algorithms()) {
    if (info.proactive) continue;
    const ParamBlock block = make_param_block(info.id, values_of(info.name, "", {}, facts), facts);
    alignas(kStateAlignment) std::byte bytes[kStateBytes] = {};
    CHECK_FALSE(fill_request(info.id, bytes, block, Event{}, Decision{}, message));
  }
}
