// [[fault]]: what is wrong for a part of a run.

#include <fmt/format.h>

#include <algorithm>

#include "dataplane/config/fault_kinds.h"
#include "dataplane/config/scenario/fabric_shape.h"
#include "dataplane/config/scenario/table_rows.h"

namespace paceline::config {

namespace {

class FaultReader {
 public:
  FaultReader(const TomlNode& node, FaultPlace place, ReadContext& context)
      : node_(node), place_(place), context_(context) {}

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
    const bool live = place_ == FaultPlace::testbed;
    if (live && !kind.not_on_testbeds.empty()) {
      fail(node_.find("kind")->value.where,
           fmt::format("fault.kind = \"{}\": {}", out.kind, kind.not_on_testbeds));
    }
    read_severity(kind, out);
    if (kind.target == FaultTarget::rank) read_rank(out);
    if (const TomlMember* m = node_.find("direction"); m != nullptr && !kind.one_direction) {
      fail(m->value.where,
           fmt::format("fault.direction does nothing with fault.kind = \"{}\"", out.kind));
    }
    if (const TomlMember* m = node_.find("seed"); m != nullptr && !kind.draws) {
      fail(m->value.where,
           fmt::format("fault.seed does nothing with fault.kind = \"{}\"", out.kind));
    }
    if (kind.repeats && out.lasts == kNever && !live) {
      fail(node_.where, fmt::format("fault.kind = \"{}\" needs fault.for", kind.name));
    }
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
      return;
    }
    const std::string wrong = severity_error(kind, out.severity);
    if (wrong.empty()) return;
    fail(given->value.where,
         kind.most == 0 ? "fault.severity " + wrong
                        : fmt::format("fault.severity = {}: {}", describe(given->value), wrong));
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

  const TomlNode& node_;
  FaultPlace place_;
  ReadContext& context_;
  bool good_ = true;
};

}  // namespace

void read_faults(const TomlNode& list, std::vector<FaultConfig>& out, ReadContext& context,
                 FaultPlace place) {
  out.clear();
  each_table(list, "fault", context, [&](const TomlNode& table) {
    FaultConfig fault;
    if (FaultReader(table, place, context).read(fault)) out.push_back(std::move(fault));
  });
}

}  // namespace paceline::config
