// `paceline completion bash | zsh`: a script for the shell, which asks this program at every TAB.

#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "tools/cli/cli.h"
#include "tools/completion/candidates.h"

namespace paceline::tools {

namespace {

// Bash cuts words at "=" and ":"; here they are put together again.
constexpr const char* kBash =
    R"(# Completion of paceline for bash; made by: paceline completion bash
_paceline() {
  local word how offset joined=0 words=() lines=()
  for word in "${COMP_WORDS[@]:1:COMP_CWORD}"; do
    if ((${#words[@]} > 0)) && { ((joined)) || [[ $word == [=:] ]]; }; then
      words[${#words[@]} - 1]+=$word
      joined=0
      [[ $word == [=:] ]] && joined=1
    else
      words+=("$word")
    fi
  done
  mapfile -t lines < <("${COMP_WORDS[0]}" completion words -- "${words[@]}" 2>/dev/null)
  how=${lines[0]}
  COMPREPLY=()
  case $how in
    program\ *)
      offset=$((COMP_CWORD - ${#words[@]} + ${how#program } + 1))
      if declare -F _command_offset >/dev/null; then
        _command_offset "$offset"
      elif ((offset == COMP_CWORD)); then
        mapfile -t COMPREPLY < <(compgen -c -- "${COMP_WORDS[COMP_CWORD]}")
      else
        mapfile -t COMPREPLY < <(compgen -f -- "${COMP_WORDS[COMP_CWORD]}")
        compopt -o filenames 2>/dev/null
      fi
      return
      ;;
    files)
      mapfile -t COMPREPLY < <(compgen -f -- "${COMP_WORDS[COMP_CWORD]}")
      compopt -o filenames 2>/dev/null
      ;;
  esac
  for word in "${lines[@]:1}"; do
    COMPREPLY+=("${word%%$'\t'*}")
  done
}
complete -F _paceline paceline
)";

constexpr const char* kZsh = R"(#compdef paceline
# Completion of paceline for zsh; made by: paceline completion zsh
_paceline() {
  local how
  local -a lines shown
  lines=("${(@f)$("${words[1]}" completion words -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
  how=${lines[1]}
  lines=("${(@)lines[2,-1]}")
  if [[ $how == program\ * ]]; then
    words=("${(@)words[${how#program }+2,-1]}")
    CURRENT=$((CURRENT - ${how#program } - 1))
    _normal
    return
  fi
  shown=("${(@)lines//:/\\:}")
  shown=("${(@)shown/$'\t'/:}")
  (( ${#lines} )) && _describe paceline shown
  [[ $how == files ]] && _files
}
if [[ ${zsh_eval_context[-1]} == loadautofunc ]]; then
  _paceline "$@"
else
  compdef _paceline paceline
fi
)";

int print_words(const config::Command& app, const std::vector<std::string>& words) {
  const Candidates found = find_candidates(app, words);
  if (found.program) {
    fmt::print("program {}\n", *found.program);
  } else {
    fmt::print("{}\n", found.files ? "files" : "words");
  }
  for (const Candidate& one : found.words) fmt::print("{}\t{}\n", one.word, one.help);
  return kExitGood;
}

}  // namespace

void add_completion_command(const config::Command& app, int& exit_code) {
  const config::Command command =
      app.subcommand("completion", "complete this command line in bash or zsh");
  command.require_subcommand();
  const auto add_script = [&](const char* shell, const char* script) {
    command.subcommand(shell, fmt::format("print the script for {}", shell))
        .callback([script, &exit_code] {
          fmt::print("{}", script);
          exit_code = kExitGood;
        });
  };
  add_script("bash", kBash);
  add_script("zsh", kZsh);
  const config::Command words =
      command.subcommand("words", "print the words that may follow; the scripts call this");
  auto typed = std::make_shared<std::vector<std::string>>();
  words.option("WORD", *typed, "the words after `paceline`, behind --; the last one is completed");
  words.positionals_at_end();
  words.callback([typed, &app, &exit_code] { exit_code = print_words(app, *typed); });
  command.footer(
      "The Debian package installs both. Without it:\n"
      "  source <(paceline completion bash)                        # in ~/.bashrc\n"
      "  source <(paceline completion zsh)                         # in ~/.zshrc, after compinit");
}

}  // namespace paceline::tools
