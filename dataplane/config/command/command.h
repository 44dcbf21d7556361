// A program or one of its commands: the only way to declare a command line. CLI11 stays behind it,
// because each unit that includes that library's headers compiles all of it again. A handle: copies
// mean the same command. The handle of a program, and its copies, own the commands below.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dataplane/config/command/option.h"

namespace CLI {
class App;
}

namespace paceline::config {

class Command {
 public:
  // A program.
  explicit Command(std::string_view description = {});

  Command subcommand(std::string_view name, std::string_view help) const;
  void require_subcommand(std::size_t least = 1, std::size_t most = 1) const;
  bool got_subcommand(const Command& below) const;

  // Variables must live as long as the command.
  Option option(std::string_view names, std::string& value, std::string_view help = {}) const;
  Option option(std::string_view names, bool& value, std::string_view help = {}) const;
  Option option(std::string_view names, double& value, std::string_view help = {}) const;
  Option option(std::string_view names, int& value, std::string_view help = {}) const;
  Option option(std::string_view names, std::int64_t& value, std::string_view help = {}) const;
  Option option(std::string_view names, std::uint32_t& value, std::string_view help = {}) const;
  Option option(std::string_view names, std::uint64_t& value, std::string_view help = {}) const;
  Option option(std::string_view names, std::optional<double>& value,
                std::string_view help = {}) const;
  Option option(std::string_view names, std::optional<std::uint32_t>& value,
                std::string_view help = {}) const;
  Option option(std::string_view names, std::optional<std::uint64_t>& value,
                std::string_view help = {}) const;
  Option option(std::string_view names, std::vector<std::string>& value,
                std::string_view help = {}) const;
  Option option(std::string_view names, std::vector<std::uint64_t>& value,
                std::string_view help = {}) const;
  Option option(std::string_view names, std::array<int, 2>& value,
                std::string_view help = {}) const;
  Option flag(std::string_view names, bool& value, std::string_view help = {}) const;

  void version(std::string_view text) const;  // --version
  void footer(std::string_view text) const;   // below the options in --help
  void callback(std::function<void()> run) const;
  // All words from the first positional argument on belong to that.
  void positionals_at_end() const;
  // All words that follow are allowed, and are not read.
  void prefix_command() const;

  // For those who read command lines or complete them.
  CLI::App& app() const { return *app_; }

 private:
  explicit Command(std::shared_ptr<CLI::App> app);
  template <class Value>
  Option declare(std::string_view names, Value& value, std::string_view help) const;

  std::shared_ptr<CLI::App> app_;
};

}  // namespace paceline::config
