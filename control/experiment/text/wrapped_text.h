#pragma once

#include <cstddef>
#include <string>

namespace paceline::experiment {

// The text in lines of at most `width`, broken at spaces: the first indented by `indent`, further
// ones by `further`. A word that is longer stays whole.
std::string wrapped(const std::string& text, std::size_t indent, std::size_t further,
                    std::size_t width);

}  // namespace paceline::experiment
