// [[fault]]: what is wrong for a part of a run.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "dataplane/config/fault_kinds.h"
#include "dataplane/config/scenario/fabric_shape.h"
#include "dataplane/config/scenario/table_rows.h"

namespace paceline::config {

namespace {

constexpr double kMostRepeats = 100'000;

class FaultReader {
 public:
  FaultReader(const TomlNode& node, ReadContext& context) : node_(node), context_(context) {}

  // False, and errors, if it cannot be used.
  bool read(FaultConfig& out) {
    std::vector<Row> rows;
    for (const KeySpec& key : fault_keys()) {
      rows.push_back({key, fault_field(out, key.name())});
    }
    good_ = read_rows(node_, "fault", rows, {}, context_, [](const TomlMember&) {});
    for (const std::string_view key : {"kind", "target"}) {
      if (node_.find(key) == nullptr) {
        fail(node_.where, fmt::format("a [[fault]] needs \"{}\"", key));
      }
    }
    if (!good_) return false;
    out.where = to_string(node_.find("target")->value.where);
    const FaultKindInfo& kind = *find_fault_kind(out.kind);
    read_severity(kind, out);
    if (kind.target == FaultTarget::rank) read_rank(out);
    if (const TomlMember* m = node_.find("direction"); m != nullptr && !kind.one_direction) {
      fail(m->value.where,
           fmt::format("fault.direction does nothing with fault.kind = \"{}\"", out.kind));
    }
    if (kind.repeats != 0) check_repeats(kind, out);
    return good_;
  }

 private:
  void fail(const Where& where, const std::string& why) {
    context_.errors->add(where, why);
    good_ = false;
  }

  void read_severity(const FaultKindInfo& kind, FaultConfig& out) {
    const TomlMember* const given = node_.find("severity");
    if (given == nullptr) {
      out.severity = kind.usual;
    } else if (kind.most == 0) {
      fail(given->value.where,
           fmt::format("fault.severity does nothing with fault.kind = \"{}\"", kind.name));
    } else if (!(out.severity >= kind.least && out.severity <= kind.most)) {
      fail(given->value.where,
           fmt::format("fault.severity = {}: out of range, allowed with fault.kind = \"{}\" is "
                       "[{} .. {}]: {}",
                       describe(given->value), kind.name, kind.least, kind.most, kind.severity));
    } else if (kind.kind == FaultKind::wrong_dscp && out.severity != std::floor(out.severity)) {
      fail(given->value.where,
           fmt::format("fault.severity = {}: expected a whole number", describe(given->value)));
    }
  }

  void read_rank(FaultConfig& out) {
    const std::string_view name = out.target;
    const auto number = whole_number(name.substr(std::min<std::size_t>(4, name.size())));
    if (name.starts_with("rank") && number) {
      out.rank = *number;
      return;
    }
    fail(node_.find("target")->value.where,
         fmt::format("fault.target = \"{}\": allowed with fault.kind = \"{}\" is {}", out.target,
                     out.kind, target_text(FaultTarget::rank)));
  }

  void check_repeats(const FaultKindInfo& kind, const FaultConfig& fault) {
    if (fault.lasts == kNever) {
      return fail(node_.where, fmt::format("fault.kind = \"{}\" needs fault.for", kind.name));
    }
    const double rate = kind.repeats < 0 ? fault.severity : kind.repeats;
    const double times = static_cast<double>(fault.lasts.count) / 1e12 * rate;
    if (times <= kMostRepeats) return;
    fail(node_.find("for")->value.where,
         fmt::format("a fault that happens {:.0f} times; allowed are {:.0f}: less fault.for{}",
                     times, kMostRepeats, kind.repeats < 0 ? " or fault.severity" : ""));
  }

  const TomlNode& node_;
  ReadContext& context_;
  bool good_ = true;
};

}  // namespace

void read_faults(const TomlNode& list, std::vector<FaultConfig>& out, ReadContext& context) {
  out.clear();
  each_table(list, "fault", context, [&](const TomlNode& table) {
    FaultConfig fault;
    if (FaultReader(table, context).read(fault)) out.push_back(std::move(fault));
  });
}

}  // namespace paceline::config
