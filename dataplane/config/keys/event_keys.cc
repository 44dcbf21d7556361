// The keys of an [[event]].
#include <array>

#include "dataplane/config/keys/scenario_keys.h"
#include "dataplane/config/toml/quantity.h"

namespace paceline::config {

namespace {

constexpr double kNs = 1e3, kSecond = 1e12;

constexpr auto kActions = std::to_array<std::string_view>(
    {"down", "up", "rate", "delay", "loss", "corrupt", "duplicate", "reorder"});

constexpr auto kDirections = std::to_array<std::string_view>({"both", "up", "down"});

constexpr auto kEventKeys = std::to_array<KeySpec>({
    {.path = "event.at", .min = 0, .max = 1000 * kSecond, .meaning = "When it happens. Required."},
    {.path = "event.link",
     .meaning =
         "The link: \"host3\", \"host3.p1\", \"leaf0-spine1\", \"spine4-core2\", "
         "\"leaf0-leaf1\" (dumbbell); the second of parallel ones \"leaf0-spine1#1\"; "
         "\"12-20\" by a topology file's numbers; or all of \"leaf0\", \"spine1\", \"core2\", "
         "\"plane1\", \"server2\". Required."},
    {.path = "event.action", .form = Form::choice, .choices = kActions, .meaning = "Required."},
    {.path = "event.rate",
     .min = kLeastRate,
     .max = kMostRate,
     .used_by = "rate",
     .meaning = "The rate from then on."},
    {.path = "event.delay",
     .min = kNs,
     .max = kSecond,
     .used_by = "delay",
     .meaning = "The propagation delay from then on."},
    {.path = "event.probability",
     .min = 0,
     .max = 1,
     .used_by = "loss corrupt duplicate reorder",
     .meaning = "The probability per packet from then on; 0 ends it."},
    {.path = "event.direction",
     .form = Form::choice,
     .choices = kDirections,
     .used_by = "rate delay loss corrupt duplicate reorder",
     .meaning = "\"up\": away from hosts, or from the first end."},
});

}  // namespace

std::span<const KeySpec> event_keys() { return kEventKeys; }

Field event_field(EventConfig& event, std::string_view name) {
  if (name == "at") return &event.at;
  if (name == "link") return &event.link;
  if (name == "action") return &event.action;
  if (name == "rate") return &event.rate;
  if (name == "delay") return &event.delay;
  if (name == "direction") return &event.direction;
  return &event.probability;
}

}  // namespace paceline::config
