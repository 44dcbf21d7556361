#include "dataplane/config/command_line.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <set>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <CLI/CLI.hpp>

#include "cc/nearest_name.h"
#include "dataplane/base/text/printable.h"
#include "dataplane/config/toml/diagnostics.h"

namespace paceline::config {

namespace {

// All names one typing error away; if there are none, the nearest name.
std::string hint_for(std::string_view name, const std::vector<std::string>& candidates) {
  const std::vector<std::string_view> views(candidates.begin(), candidates.end());
  std::vector<std::string_view> near;
  std::copy_if(views.begin(), views.end(), std::back_inserter(near),
               [name](std::string_view candidate) {
                 return !cc::nearest_name(name, std::span(&candidate, 1), 1).empty();
               });
  if (near.empty()) near.push_back(nearest_name(name, views));
  if (near.front().empty()) return {};
  return fmt::format("; did you mean {}?", fmt::join(near, " or "));
}

std::string quoted_list(const std::vector<std::string>& names) {
  const std::vector<std::string_view> views(names.begin(), names.end());
  return list_names(views);
}

// As CLI11 reads it: "-1" and "-" are values.
bool is_option(std::string_view argument) {
  return argument.size() > 1 && argument[0] == '-' &&
         std::isdigit(static_cast<unsigned char>(argument[1])) == 0;
}

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(sub->get_name());
  }
  return names;
}

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

std::string whole_number_fault(std::string_view text) {
  const bool hex = text.starts_with("0x") || text.starts_with("0X");
  const std::string_view digits = hex ? text.substr(2) : text;
  const bool whole = !digits.empty() && std::all_of(digits.begin(), digits.end(), [hex](char c) {
    const auto at = static_cast<unsigned char>(c);
    return hex ? std::isxdigit(at) != 0 : std::isdigit(at) != 0;
  });
  if (!whole || (!hex && digits.size() > 1 && digits[0] == '0')) {
    return "expected a whole number from 0, without sign and leading zeros";
  }
  errno = 0;
  static_cast<void>(std::strtoull(std::string(text).c_str(), nullptr, 0));
  return errno == ERANGE ? "too large; allowed is 18446744073709551615 at most" : "";
}

std::string number_fault(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  return *end == '\0' && std::isfinite(value) ? "" : "expected a number";
}

// Turns CLI11's names of checks in --help ("INT in [1 - 8]", "{on,off}", "POSITIVE") into
// sentences.
std::string allowed_by(const std::string& check, const std::string& text) {
  if (const auto range = check.find(" in ["); range != std::string::npos) {
    std::string bounds = check.substr(range + 4);
    if (const auto dash = bounds.find(" - "); dash != std::string::npos) {
      bounds.replace(dash, 3, " .. ");
    }
    return "allowed is " + bounds;
  }
  if (check.size() > 2 && check.front() == '{' && check.back() == '}') {
    const auto names = CLI::detail::split(check.substr(1, check.size() - 2), ',');
    return "allowed is " + quoted_list(names) + hint_for(text, names);
  }
  if (check == "POSITIVE") return "allowed is a number above 0";
  if (check == "NONNEGATIVE") return "allowed is 0 or a number above 0";
  return {};
}

// The error that the option's own checks find in the value.
std::string check_fault(CLI::Option& option, const std::string& text) {
  const std::string described = option.get_type_name();
  const auto colon = described.find(':');
  const std::string check = colon == std::string::npos ? "" : described.substr(colon + 1);
  for (int i = 0;; ++i) {
    const CLI::Validator* validator = nullptr;
    try {
      validator = option.get_validator(i);
    } catch (const CLI::OptionNotFound&) {
      return {};
    }
    std::string copy = text;
    const std::string complaint = (*validator)(copy);
    if (complaint.empty()) continue;
    const std::string allowed = allowed_by(check, text);
    return allowed.empty() ? complaint : allowed;
  }
}

std::string value_fault(CLI::Option& option, const std::string& text) {
  const std::string described = option.get_type_name();
  const std::string type = described.substr(0, described.find(':'));
  std::string fault;
  if (text.empty()) {
    fault = "must not be empty; expected " + type;
  } else if (type == "N" || type == "INT" || type == "UINT") {
    fault = whole_number_fault(text);
  } else if (type == "FLOAT" || type == "GBPS") {
    fault = number_fault(text);
  }
  if (fault.empty() || !allowed_by(described.substr(type.size()), text).empty()) {
    const std::string by_check = check_fault(option, text);
    if (!by_check.empty()) fault = by_check;
  }
  if (fault.empty()) return {};
  return fmt::format("{} {}: {}", option.get_name(), text.empty() ? "\"\"" : text, fault);
}

class Walk {
 public:
  Walk(CLI::App& app, std::span<char* const> arguments, std::string_view program)
      : app_(&app), arguments_(arguments), command_(program) {}

  CommandLineFault run() {
    std::string fault;
    while (fault.empty() && at_ < arguments_.size()) {
      const std::string argument = arguments_[at_++];
      if (argument == "--") {
        ended_ = true;  // the rest belongs to the program to be run
        break;
      }
      fault = is_option(argument) ? option(argument) : word(argument);
      if (ended_ || app_->get_prefix_command()) break;
    }
    if (fault.empty() && !ended_ && app_->get_require_subcommand_min() > 0) {
      fault = fmt::format("a command is missing; expected {}", quoted_list(command_names(*app_)));
    }
    return {fault, command_};
  }

 private:
  std::string option(const std::string& argument) {
    const bool is_long = argument.starts_with("--");
    const std::size_t equals = argument.find('=');
    const std::string name = is_long ? argument.substr(0, equals) : argument.substr(0, 2);
    CLI::Option* const found = app_->get_option_no_throw(name);
    if (found == nullptr) {
      return fmt::format("{}: there is no such option{}", name,
                         hint_for(name, option_names(*app_)));
    }
    if (name == "--help" || name == "-h" || name == "--version") ended_ = true;
    if (found->get_items_expected_max() == 0) {
      if (is_long) {
        return equals == std::string::npos ? ""
                                           : fmt::format("{}: the option takes no value", argument);
      }
      // "-qj4" is "-q -j4".
      return argument.size() > 2 ? option("-" + argument.substr(2)) : "";
    }
    if (found->get_items_expected_max() == 1 && !seen_.insert(found).second) {
      return fmt::format("{}: given twice; allowed is once", found->get_name());
    }
    if (is_long && equals != std::string::npos)
      return value_fault(*found, argument.substr(equals + 1));
    if (!is_long && argument.size() > 2) return value_fault(*found, argument.substr(2));
    if (!value_follows()) {
      const std::string type = found->get_type_name();
      return fmt::format("{}: the value is missing; expected {}", found->get_name(),
                         type.substr(0, type.find(':')));
    }
    std::string fault = value_fault(*found, arguments_[at_++]);
    // A list option takes the values that follow, too, unless extra arguments are switched off; a
    // pair takes two.
    const bool list = found->get_allow_extra_args() && found->get_items_expected_max() > 1;
    for (int taken = 1;
         fault.empty() && (list || taken < found->get_items_expected_min()) && value_follows();
         ++taken) {
      fault = value_fault(*found, arguments_[at_++]);
    }
    return fault;
  }

  bool value_follows() const { return at_ < arguments_.size() && !is_option(arguments_[at_]); }

  std::string word(const std::string& argument) {
    for (CLI::App* sub : app_->get_subcommands([](CLI::App*) { return true; })) {
      if (sub->get_name() != argument) continue;
      app_ = sub;
      command_ += " " + argument;
      positional_ = 0;
      return {};
    }
    std::vector<CLI::Option*> positionals;
    for (CLI::Option* option : app_->get_options()) {
      if (option->get_positional()) positionals.push_back(option);
    }
    if (positionals.empty() && !command_names(*app_).empty()) {
      const auto names = command_names(*app_);
      const std::string near = hint_for(argument, names);
      return fmt::format("{}: there is no such command{}", argument,
                         near.empty() ? "; expected " + quoted_list(names) : near);
    }
    if (positional_ >= positionals.size()) {
      return positionals.empty()
                 ? fmt::format("{}: not expected; {} takes options only", argument, command_)
                 : fmt::format("{}: one argument too many; {} is {}", argument,
                               positionals.back()->get_name(), last_word_);
    }
    CLI::Option* const option = positionals[positional_];
    if (app_->get_positionals_at_end()) ended_ = true;  // the rest belongs to the program to be run
    last_word_ = argument;
    if (option->get_items_expected_max() == 1) ++positional_;
    return value_fault(*option, argument);
  }

  CLI::App* app_;
  std::span<char* const> arguments_;
  std::string command_;
  std::size_t at_ = 0;
  std::size_t positional_ = 0;
  std::string last_word_;
  bool ended_ = false;
  std::set<const CLI::Option*> seen_;
};

// The text of an error that only CLI11 finds: an option that is required, or that another needs.
std::string words_for(const CLI::ParseError& error) {
  constexpr std::string_view kConversion = "Could not convert: ";
  std::string text = error.what();
  if (!text.starts_with(kConversion)) return text;
  // find_fault() has found all conversion errors except a number too large for its variable.
  text.erase(0, kConversion.size());
  if (const auto equals = text.find(" = "); equals != std::string::npos)
    text.replace(equals, 3, " ");
  return text + ": too large";
}

}  // namespace

CommandLineFault find_fault(const Command& command, std::span<char* const> arguments,
                            std::string_view program) {
  return Walk(command.app(), arguments, program).run();
}

std::optional<int> read_command_line(const Command& command, int argc, char** argv,
                                     std::string_view program) {
  const auto refuse = [program](const std::string& error, const std::string& whose) {
    fmt::print(stderr, "{}: error: {}\nSee {} --help\n", program, printable_lines(error), whose);
    return kBadCommandLine;
  };
  const CommandLineFault fault = find_fault(
      command, std::span(argv, static_cast<std::size_t>(argc)).subspan(argc > 0), program);
  if (!fault.error.empty()) return refuse(fault.error, fault.command);
  try {
    command.app().parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return command.app().exit(error);  // --help, --version
    return refuse(words_for(error), fault.command);
  }
  return std::nullopt;
}

}  // namespace paceline::config
