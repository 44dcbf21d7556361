// Tools for the rules between the keys of a scenario. Each rule is reported at the key that a
// person would change.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

#include "dataplane/config/scenario/table_reader.h"

namespace paceline::config {

class KeyChecks {
 public:
  // All must outlive this. start: where the scenario begins, for rules about keys that are missing.
  KeyChecks(const Scenario& scenario, const GivenKeys& given, const Where& start,
            ReadContext& context)
      : s_(scenario), given_(given), start_(start), context_(context) {}

 protected:
  using Paths = std::initializer_list<std::string_view>;

  // Reports at the first of `paths` that was given, unless one of them already failed to read.
  void require(bool holds, Paths paths, const std::string& message);

  // An error at each of `keys` that was given for this scenario.
  void refuse(Paths keys, std::string_view does_nothing_with);

  // With a topology file, only the reader of that file knows the number of hosts.
  bool hosts_known() const { return s_.fabric.topology != "file"; }

  const Scenario& s_;
  const GivenKeys& given_;
  const Where& start_;
  ReadContext& context_;
};

}  // namespace paceline::config
