#include "control/experiment/text/wrapped_text.h"

#include <algorithm>

namespace paceline::experiment {

std::string wrapped(const std::string& text, std::size_t indent, std::size_t further,
                    std::size_t width) {
  std::string out;
  std::string line(indent, ' ');
  bool empty = true;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t space = std::min(text.find(' ', at), text.size());
    const std::string word = text.substr(at, space - at);
    at = space + 1;
    if (!empty && line.size() + 1 + word.size() > width) {
      out += line + '\n';
      line.assign(further, ' ');
      empty = true;
    }
    if (!empty) line += ' ';
    line += word;
    empty = false;
  }
  return out + line + '\n';
}

}  // namespace paceline::experiment
