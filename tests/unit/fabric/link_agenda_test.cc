#include "dataplane/fabric/wire/link_agenda.h"

#include <array>
#include <catch2/catch.hpp>
#include <initializer_list>

namespace paceline::fabric {
namespace {

LinkEvent event_at(std::int64_t at, std::uint32_t link, LinkAction action) {
  return {.at = Picos{at}, .link = link, .action = action};
}

struct Expected {
  std::int64_t at;
  std::uint32_t link;
  LinkAction action;
  bool reroute;
};

// These come, each at its time and not before, and nothing else.
void check_order(LinkAgenda& agenda, std::initializer_list<Expected> expected) {
  for (const Expected& want : expected) {
    CAPTURE(want.at, want.link);
    CHECK(agenda.next() == Picos{want.at});
    CHECK(agenda.take(Picos{want.at - 1}) == nullptr);
    const LinkAgenda::Item* item = agenda.take(Picos{want.at});
    REQUIRE(item != nullptr);
    CHECK(item->at == Picos{want.at});
    CHECK(item->event.link == want.link);
    CHECK(item->event.action == want.action);
    CHECK(item->reroute == want.reroute);
  }
  CHECK(agenda.next() == kNever);
}

TEST_CASE("agenda: an empty one is never due") {
  LinkAgenda agenda(FabricSpec{});
  CHECK(agenda.next() == kNever);
  CHECK(agenda.take(Picos{1'000}) == nullptr);
}

TEST_CASE("agenda: events come by time, each failure followed by the switches' learning of it") {
  FabricSpec spec;
  spec.links.resize(3);
  spec.reroute_delay = Picos{50};
  spec.events = {event_at(200, 1, LinkAction::up), event_at(100, 1, LinkAction::down),
                 event_at(100, 2, LinkAction::rate), event_at(250, 0, LinkAction::loss)};
  LinkAgenda agenda(spec);
  // Events at the same time stay in the given order; what the routes learn from an event keeps the
  // place of that event.
  check_order(agenda, {{100, 1, LinkAction::down, false},
                       {100, 2, LinkAction::rate, false},
                       {150, 1, LinkAction::down, true},
                       {200, 1, LinkAction::up, false},
                       {250, 1, LinkAction::up, true},
                       {250, 0, LinkAction::loss, false}});
}

TEST_CASE("agenda: an event that is added comes behind those at its time") {
  FabricSpec spec;
  spec.links.resize(4);
  spec.reroute_delay = Picos{50};
  spec.events = {event_at(100, 0, LinkAction::down), event_at(200, 1, LinkAction::rate)};
  LinkAgenda agenda(spec);
  REQUIRE(agenda.take(Picos{100}) != nullptr);
  REQUIRE(agenda.take(Picos{150}) != nullptr);
  const std::array more{event_at(200, 2, LinkAction::up), event_at(160, 3, LinkAction::loss)};
  agenda.add(more);
  check_order(agenda, {{160, 3, LinkAction::loss, false},
                       {200, 1, LinkAction::rate, false},
                       {200, 2, LinkAction::up, false},
                       {250, 2, LinkAction::up, true}});
}

TEST_CASE("agenda: what repeats itself comes again until its end, behind others at its time") {
  FabricSpec spec;
  spec.links.resize(3);
  spec.reroute_delay = Picos{5};
  LinkEvent down = event_at(100, 0, LinkAction::down);
  down.every = Picos{40};
  down.until = Picos{180};
  spec.events = {down, event_at(140, 1, LinkAction::rate)};
  LinkAgenda agenda(spec);
  check_order(agenda, {{100, 0, LinkAction::down, false},
                       {105, 0, LinkAction::down, true},
                       {140, 1, LinkAction::rate, false},
                       {140, 0, LinkAction::down, false},
                       {145, 0, LinkAction::down, true}});
}

TEST_CASE("agenda: what was planned for a link is forgotten, what comes later is not") {
  FabricSpec spec;
  spec.links.resize(2);
  spec.reroute_delay = Picos{50};
  LinkEvent flap = event_at(100, 0, LinkAction::down);
  flap.every = Picos{1000};
  spec.events = {flap, event_at(300, 0, LinkAction::loss), event_at(300, 1, LinkAction::loss)};
  LinkAgenda agenda(spec);
  REQUIRE(agenda.take(Picos{100})->event.action == LinkAction::down);
  agenda.add(std::array{event_at(120, 0, LinkAction::forget), event_at(120, 0, LinkAction::up),
                        event_at(400, 0, LinkAction::rate)});
  const LinkAgenda::Item* const forget = agenda.take(Picos{120});
  REQUIRE(forget->event.action == LinkAction::forget);
  agenda.forget_before(*forget);
  // The switches still learn of the failure that has happened, and of the return.
  check_order(agenda, {{120, 0, LinkAction::up, false},
                       {150, 0, LinkAction::down, true},
                       {170, 0, LinkAction::up, true},
                       {300, 1, LinkAction::loss, false},
                       {400, 0, LinkAction::rate, false}});
}

TEST_CASE("agenda: what the switches learned of one link says nothing of another") {
  FabricSpec spec;
  spec.links.resize(2);
  LinkAgenda agenda(spec);
  CHECK(agenda.failed() == std::vector<bool>{false, false});
  agenda.learn(1, true);
  CHECK(agenda.failed() == std::vector<bool>{false, true});
  agenda.learn(1, false);
  CHECK(agenda.failed() == std::vector<bool>{false, false});
}

}  // namespace
}  // namespace paceline::fabric
