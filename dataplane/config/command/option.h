// An option or a positional argument of a command line that is being declared. A handle: copies
// mean the same option, whose command keeps it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class Option;
}

namespace paceline::config {

class Option {
 public:
  explicit Option(CLI::Option& option) : option_(&option) {}

  // What --help calls the value: "N", "FILE.json".
  Option type(std::string_view name) const;
  Option required() const;
  // --help shows the value that the variable has now.
  Option shows_default() const;
  // A list takes one value each time that the option is given, so that a positional may follow.
  Option one_by_one() const;
  Option separated_by(char separator) const;

  // What is allowed; --help says it, too.
  Option within(int least, int most) const;
  Option within(std::uint32_t least, std::uint32_t most) const;
  Option within(std::uint64_t least, std::uint64_t most) const;
  Option within(double least, double most) const;
  Option one_of(const std::vector<std::string>& names) const;
  Option positive() const;
  Option not_negative() const;

  Option needs(Option other) const;
  Option excludes(Option other) const;
  Option transform(const std::function<std::string(std::string)>& change) const;

 private:
  CLI::Option* option_;
};

}  // namespace paceline::config
