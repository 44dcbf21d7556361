#include "tools/completion/candidates.h"

#include <algorithm>
#include <string_view>

#include <CLI/CLI.hpp>

namespace paceline::tools {

namespace {

bool is_offered(const CLI::Option& option) { return !option.get_group().empty(); }

std::vector<const CLI::Option*> positionals_in(const CLI::App& app) {
  std::vector<const CLI::Option*> out;
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_positional()) out.push_back(option);
  }
  return out;
}

// The first sentence or line of a text: a menu has no room for more.
std::string short_help(const std::string& text) { return text.substr(0, text.find('\n')); }

void offer_commands(const CLI::App& app, Candidates& out) {
  for (const CLI::App* sub :
       app.get_subcommands([](const CLI::App* one) { return !one->get_group().empty(); })) {
    out.words.push_back({sub->get_name(), short_help(sub->get_description())});
  }
}

void offer_options(const CLI::App& app, Candidates& out) {
  for (const CLI::Option* option : app.get_options()) {
    if (!is_offered(*option) || option->get_positional()) continue;
    for (const std::string& name : option->get_lnames()) {
      out.words.push_back({"--" + name, short_help(option->get_description())});
    }
    for (const std::string& name : option->get_snames()) {
      if (option->get_lnames().empty()) {
        out.words.push_back({"-" + name, short_help(option->get_description())});
      }
    }
  }
}

// "TEXT:{on,off}" has choices; names of types and of positionals tell what is a file.
void offer_values(const CLI::Option& option, Candidates& out) {
  const std::string type = option.get_type_name();
  const auto open = type.find('{');
  const auto close = type.find('}', open);
  if (open != std::string::npos && close != std::string::npos) {
    for (const std::string& word :
         CLI::detail::split(type.substr(open + 1, close - open - 1), ',')) {
      out.words.push_back({word, ""});
    }
    return;
  }
  const std::string described = type + " " + option.get_name(true);
  for (const std::string_view name : {"FILE", "PATH", "DIR", "FOLDER"}) {
    out.files = out.files || described.find(name) != std::string::npos;
  }
}

// The command to which the words before the last one lead, and what it still expects.
struct CommandWalk {
  const CLI::App* app = nullptr;
  const CLI::Option* value_of = nullptr;
  std::size_t positional = 0;
  bool options_ended = false;
  std::optional<std::size_t> program;
};

void step_over_option(const std::string& word, CommandWalk& walk) {
  const auto equals = word.find('=');
  const CLI::Option* const option = walk.app->get_option_no_throw(word.substr(0, equals));
  if (option == nullptr || option->get_items_expected_max() == 0) return;
  if (equals == std::string::npos) walk.value_of = option;
}

const CLI::App* command_named(const CLI::App& app, const std::string& name) {
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (sub->get_name() == name) return sub;
  }
  return nullptr;
}

void step_over(const std::string& word, std::size_t place, CommandWalk& walk) {
  if (walk.value_of != nullptr) {
    walk.value_of = nullptr;
  } else if (word == "--" && !walk.options_ended) {
    walk.options_ended = true;
    if (walk.app->get_positionals_at_end()) walk.program = place + 1;
  } else if (word.size() > 1 && word[0] == '-' && !walk.options_ended) {
    step_over_option(word, walk);
  } else if (const CLI::App* sub = command_named(*walk.app, word); sub != nullptr) {
    walk.app = sub;
    walk.positional = 0;
    walk.options_ended = false;
  } else {
    ++walk.positional;
    if (walk.app->get_positionals_at_end()) walk.program = place;
  }
}

}  // namespace

Candidates find_candidates(const config::Command& program, std::span<const std::string> words) {
  Candidates out;
  CommandWalk walk;
  walk.app = &program.app();
  for (std::size_t i = 0; i + 1 < words.size() && !walk.program; ++i) step_over(words[i], i, walk);
  if (walk.program) {
    out.program = walk.program;
    return out;
  }
  const std::string last = words.empty() ? "" : words.back();
  if (walk.value_of != nullptr) {
    offer_values(*walk.value_of, out);
  } else if (last.starts_with('-') && !walk.options_ended) {
    offer_options(*walk.app, out);
  } else {
    offer_commands(*walk.app, out);
    const auto positionals = positionals_in(*walk.app);
    if (walk.app->get_positionals_at_end()) {
      out.program = words.size() - 1;
    } else if (!positionals.empty()) {
      // The last positional may be a list.
      offer_values(*positionals[std::min(walk.positional, positionals.size() - 1)], out);
    }
    if (out.words.empty() && !out.files && !out.program) offer_options(*walk.app, out);
  }
  std::erase_if(out.words, [&](const Candidate& one) { return !one.word.starts_with(last); });
  return out;
}

}  // namespace paceline::tools
