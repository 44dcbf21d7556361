#include "control/experiment/page/html_text.h"

#include <fmt/format.h>

#include "control/experiment/page/page_assets.h"

namespace paceline::experiment {

std::string html_escaped(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string json_in_script(std::string_view json) {
  std::string out;
  out.reserve(json.size() + 64);
  for (const char c : json) {
    if (c == '<') {
      out += "\\u003c";
    } else {
      out += c;
    }
  }
  return out;
}

std::string table_head(std::string_view name, const std::vector<std::string>& columns) {
  std::string out = fmt::format("<div class=\"scroll\"><table class=\"{}\">\n<thead><tr>", name);
  for (const std::string& column : columns) {
    const bool figures = column.starts_with('#');
    out += fmt::format("<th scope=\"col\"{}>{}</th>", figures ? " class=\"n\"" : "",
                       html_escaped(column.substr(figures ? 1 : 0)));
  }
  return out + "</tr></thead>\n<tbody>\n";
}

std::string page_html(const Page& page) {
  std::string out = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta "
      "http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; {}style-src "
      "'unsafe-inline'; img-src data:\">\n<meta name=\"viewport\" content=\"width=device-width, "
      "initial-scale=1\">\n<meta name=\"generator\" content=\"paceline\">\n<meta "
      "name=\"color-scheme\" content=\"light dark\">\n<title>{}</title>\n<link rel=\"icon\" "
      "href=\"data:,\">\n<style>\n{}{}</style>\n</head>\n<body>\n",
      page.script.empty() ? "" : "script-src 'unsafe-inline'; ", html_escaped(page.title),
      page_style(), page.style);
  if (!page.contents.empty()) {
    out += fmt::format("<a class=\"skip\" href=\"#{}\">Skip to the results</a>\n",
                       page.contents.front().first);
  }
  out += fmt::format("<header>\n<h1>{}</h1>\n<p class=\"against\">{}</p>\n<dl>",
                     html_escaped(page.heading), page.against);
  for (const auto& [name, value] : page.facts) {
    out += fmt::format("<div><dt>{}</dt><dd>{}</dd></div>", name, html_escaped(value));
  }
  out += "</dl>\n";
  for (const auto& entry : page.contents) {
    out += &entry == &page.contents.front() ? "<nav aria-label=\"Contents\">" : " ";
    out += fmt::format("<a href=\"#{}\">{}</a>", entry.first, html_escaped(entry.second));
  }
  out += page.contents.empty() ? "</header>\n<main>\n" : "</nav>\n</header>\n<main>\n";
  if (!page.charts.empty() && !report_has_charts()) {
    out += fmt::format(
        "<p class=\"no-charts\">{} were left out: this paceline was built without D3 (Debian: "
        "libjs-d3). All tables are here.</p>\n",
        page.charts);
  }
  out += page.sections + "</main>\n";
  if (!page.script.empty()) {
    out += fmt::format("<script type=\"application/json\" id=\"results\">\n{}</script>\n",
                       json_in_script(page.json));
    if (report_has_charts()) out += fmt::format("<script>\n{}\n</script>\n", page_chart_library());
    out += fmt::format("<script>\n{}</script>\n", page.script);
  }
  return out + "</body>\n</html>\n";
}

bool report_has_charts() { return !page_chart_library().empty(); }

std::string chart_licence_html() {
  if (!report_has_charts()) return {};
  return fmt::format(
      "<details><summary>Licence of the chart library</summary>\n<pre>{}</pre></details>\n",
      html_escaped(page_chart_licence()));
}

}  // namespace paceline::experiment
