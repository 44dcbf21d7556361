// Escapes text for a page: names come from files that people write, and nothing in them may become
// markup. Also holds what all pages of results have in common: one self-contained file that opens
// from disk and loads nothing from the network.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace paceline::experiment {

// For text and for attribute values in double quotes.
std::string html_escaped(std::string_view text);

// JSON for a <script> element: the same document, in which nothing can end the element ("<" occurs
// only inside strings, where it may be written \u003c).
std::string json_in_script(std::string_view json);

// A table up to its first row. Columns whose name begins with '#' hold figures.
std::string table_head(std::string_view name, const std::vector<std::string>& columns);
inline constexpr std::string_view kTableEnd = "</tbody></table></div>\n";

struct Page {
  std::string title;
  std::string heading;
  std::string against;  // markup: what is compared
  std::vector<std::pair<std::string_view, std::string>> facts;
  std::vector<std::pair<std::string, std::string>> contents;  // id of a section, words
  std::string sections;                                       // markup
  std::string_view style{};                                   // beside that of all pages
  std::string_view script{};  // empty: the page needs none and may have none
  std::string_view charts{};  // which ones scripts draw, for pages without the chart library
  std::string json{};         // results, for the script
};
std::string page_html(const Page& page);

// False in a program built without the chart library: pages then hold tables only, and say so.
bool report_has_charts();
std::string chart_licence_html();

}  // namespace paceline::experiment
