#include "dataplane/config/command/command.h"

#include <utility>

#include <CLI/CLI.hpp>

namespace paceline::config {

Command::Command(std::string_view description)
    : app_(std::make_shared<CLI::App>(std::string(description))) {}

Command::Command(std::shared_ptr<CLI::App> app) : app_(std::move(app)) {}

Command Command::subcommand(std::string_view name, std::string_view help) const {
  CLI::App* const below = app_->add_subcommand(std::string(name), std::string(help));
  // Owns nothing: callbacks hold such handles, and would keep the program that holds them.
  return Command(std::shared_ptr<CLI::App>(std::shared_ptr<CLI::App>(), below));
}

void Command::require_subcommand(std::size_t least, std::size_t most) const {
  app_->require_subcommand(least, most);
}

bool Command::got_subcommand(const Command& below) const {
  return app_->got_subcommand(&below.app());
}

template <class Value>
Option Command::declare(std::string_view names, Value& value, std::string_view help) const {
  return Option(*app_->add_option(std::string(names), value, std::string(help)));
}

Option Command::option(std::string_view names, std::string& value, std::string_view help) const {
  return declare(names, value, help);
}

Option Command::option(std::string_view names, bool& value, std::string_view help) const {
  return declare(names, value, help);
}

Option Command::option(std::string_view names, double& value, std::string_view help) const {
  return declare(names, value, help);
}

Option Command::option(std::string_view names, int& value, std::string_view help) const {
  return declare(names, value, help);
}

Option Command::option(std::string_view names, std::int64_t& value, std::string_view help) const {
  return declare(names, value, help);
}

Option Command::option(std::string_view names, std::uint32_t& value, std::string_view help) const {
  return declare(names, value, help);
}

Option Command::option(std::string_view names, std::uint64_t& value, std::string_view help) const {
  return declare(names, value, help);
}

Option Command::option(std::string_view names, std::optional<double>& value,
                       std::string_view help) const {
  return declare(names, value, help);
}

Option Command::option(std::string_view names, std::optional<std::uint32_t>& value,
                       std::string_view help) const {
  return declare(names, value, help);
}

Option Command::option(std::string_view names, std::optional<std::uint64_t>& value,
                       std::string_view help) const {
  return declare(names, value, help);
}

Option Command::option(std::string_view names, std::vector<std::string>& value,
                       std::string_view help) const {
  return declare(names, value, help);
}

Option Command::option(std::string_view names, std::vector<std::uint64_t>& value,
                       std::string_view help) const {
  return declare(names, value, help);
}

Option Command::option(std::string_view names, std::array<int, 2>& value,
                       std::string_view help) const {
  return declare(names, value, help);
}

Option Command::flag(std::string_view names, bool& value, std::string_view help) const {
  return Option(*app_->add_flag(std::string(names), value, std::string(help)));
}

void Command::version(std::string_view text) const {
  app_->set_version_flag("--version", std::string(text));
}

void Command::footer(std::string_view text) const { app_->footer(std::string(text)); }

void Command::callback(std::function<void()> run) const { app_->callback(std::move(run)); }

void Command::positionals_at_end() const { app_->positionals_at_end(); }

void Command::prefix_command() const { app_->prefix_command(); }

}  // namespace paceline::config
