#include "dataplane/config/command/option.h"
#include <CLI/CLI.hpp>

namespace paceline::config {

Option Option::type(std::string_view name) const {
  option_->type_name(std::string(name));
  return *this;
}

Option Option::required() const {
  option_->required();
  return *this;
}

Option Option::shows_default() const {
  option_->capture_default_str();
  return *this;
}

Option Option::one_by_one() const {
  option_->allow_extra_args(false);
  return *this;
}

Option Option::separated_by(char separator) const {
  option_->delimiter(separator);
  return *this;
}

Option Option::within(int least, int most) const {
  option_->check(CLI::Range(least, most));
  return *this;
}

Option Option::within(std::uint32_t least, std::uint32_t most) const {
  option_->check(CLI::Range(least, most));
  return *this;
}

Option Option::within(std::uint64_t least, std::uint64_t most) const {
  option_->check(CLI::Range(least, most));
  return *this;
}

Option Option::within(double least, double most) const {
  option_->check(CLI::Range(least, most));
  return *this;
}

Option Option::one_of(const std::vector<std::string>& names) const {
  option_->check(CLI::IsMember(names));
  return *this;
}

Option Option::positive() const {
  option_->check(CLI::PositiveNumber);
  return *this;
}

Option Option::not_negative() const {
  option_->check(CLI::NonNegativeNumber);
  return *this;
}

Option Option::needs(Option other) const {
  option_->needs(other.option_);
  return *this;
}

Option Option::excludes(Option other) const {
  option_->excludes(other.option_);
  return *this;
}

Option Option::transform(const std::function<std::string(std::string)>& change) const {
  option_->transform(change);
  return *this;
}

}  // namespace paceline::config
