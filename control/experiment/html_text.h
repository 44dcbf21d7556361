// Text on its way into a page: names come from files that people write, and nothing in them may
// become markup.
#pragma once

#include <string>
#include <string_view>

namespace paceline::experiment {

// For text and for attribute values in double quotes.
std::string html_escaped(std::string_view text);

// JSON for a <script> element: the same document, in which nothing can end the element ("<" occurs
// only inside strings, where it may be written \u003c).
std::string json_in_script(std::string_view json);

}  // namespace paceline::experiment
