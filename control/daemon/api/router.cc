#include "control/daemon/api/router.h"

#include <algorithm>
#include <cstddef>
#include <set>
#include <utility>

#include "cc/nearest_name.h"
#include "control/daemon/api/check.h"
#include "control/daemon/api/events.h"
#include "control/daemon/api/json_text.h"
#include "control/daemon/api/target.h"
#include "dataplane/base/text/printable.h"

namespace paceline::daemon {

namespace {

bool is_variable(std::string_view segment) {
  return segment.size() > 2 && segment.front() == '{' && segment.back() == '}';
}

std::string_view variable_name(std::string_view segment) {
  return segment.substr(1, segment.size() - 2);
}

std::vector<std::string> template_segments(std::string_view path) {
  std::vector<std::string> segments;
  path.remove_prefix(std::min<std::size_t>(path.size(), 1));
  for (;;) {
    const std::size_t end = std::min(path.find('/'), path.size());
    segments.emplace_back(path.substr(0, end));
    if (end == path.size()) return segments;
    path.remove_prefix(end + 1);
  }
}

// "application/json", with parameters or without.
bool is_json_type(std::string_view type) {
  type = type.substr(0, type.find(';'));
  while (!type.empty() && (type.back() == ' ' || type.back() == '\t')) type.remove_suffix(1);
  constexpr std::string_view kJson = "application/json";
  return std::equal(type.begin(), type.end(), kJson.begin(), kJson.end(), [](char a, char b) {
    return (a >= 'A' && a <= 'Z' ? static_cast<char>(a - 'A' + 'a') : a) == b;
  });
}

void check_fields(const std::string& where, const std::vector<Field>& fields, bool in_text,
                  std::vector<std::string>& out) {
  std::set<std::string_view> names;
  for (const Field& field : fields) {
    const std::string at = where + "." + field.name;
    if (field.name.empty()) out.push_back(where + ": a field has no name");
    if (!names.insert(field.name).second) out.push_back(at + ": described twice");
    if (field.meaning.empty()) out.push_back(at + ": no meaning");
    if (in_text && (field.type == FieldType::object || field.type == FieldType::list)) {
      out.push_back(at + ": objects and lists belong into the body");
    }
    const bool ranged =
        field.type == FieldType::whole || field.type == FieldType::number ||
        (!in_text && (field.type == FieldType::text || field.type == FieldType::list));
    if (!ranged && (field.least != 0 || field.most != 0)) {
      out.push_back(at + ": a range is for numbers, and for texts and lists of the body");
    }
    if (field.least > field.most) out.push_back(at + ": an empty range");
    if (field.type != FieldType::text && !field.one_of.empty()) {
      out.push_back(at + ": choices are for text");
    }
  }
}

}  // namespace

std::vector<Endpoint> own_endpoints() {
  Endpoint description;
  description.method = "GET";
  description.path = kOpenApiPath;
  description.summary = "This description of the API, as OpenAPI 3.0";
  description.tag = "service";
  description.answer = "The OpenAPI document.";

  Endpoint events;
  events.method = "GET";
  events.path = kEventsPath;
  events.summary = "What happens, as it happens: server-sent events";
  events.tag = "events";
  events.query.push_back({.name = "topics",
                          .type = FieldType::text,
                          .required = false,
                          .meaning = "comma-separated list of sample, parameters, guard, trial, "
                                     "experiment, tuner, dataplane; default: all"});
  events.answer =
      "text/event-stream, until either side ends it: event: TOPIC, data: one line of JSON. A "
      "client that does not keep up gets an event \"dropped\", and the stream ends.";
  return {std::move(description), std::move(events)};
}

Router::Router(const Endpoints& endpoints) : endpoints_(endpoints.all()) {
  for (Endpoint& own : own_endpoints()) endpoints_.push_back(std::move(own));
  for (std::size_t i = 0; i < endpoints_.size(); ++i) {
    routes_.push_back({template_segments(endpoints_[i].path), i});
  }
}

std::vector<std::string> Router::contradictions() const {
  std::vector<std::string> out;
  std::set<std::string> seen;
  const std::size_t own = endpoints_.size() - own_endpoints().size();
  for (const Route& route : routes_) {
    const Endpoint& endpoint = endpoints_[route.endpoint];
    const std::string name = endpoint.method + " " + endpoint.path;
    std::string shape = endpoint.method;
    for (const std::string& segment : route.segments) {
      shape += "/" + (is_variable(segment) ? std::string("{}") : segment);
    }
    if (!seen.insert(shape).second) out.push_back(name + ": described twice");
    static constexpr std::string_view kMethods[] = {"GET", "PUT", "POST", "PATCH", "DELETE"};
    if (std::find(std::begin(kMethods), std::end(kMethods), endpoint.method) ==
        std::end(kMethods)) {
      out.push_back(name + ": methods are GET, PUT, POST, PATCH, DELETE");
    }
    if (!endpoint.path.starts_with('/')) out.push_back(name + ": a path begins with '/'");
    if (endpoint.summary.empty()) out.push_back(name + ": no summary");
    if (endpoint.tag.empty()) out.push_back(name + ": no tag");
    if (route.endpoint < own && !endpoint.handle) out.push_back(name + ": no handler");
    if (endpoint.method == "GET" && (endpoint.writes || !endpoint.body.empty())) {
      out.push_back(name + ": GET changes nothing and has no body");
    }
    check_fields(name + ": path", endpoint.path_fields, true, out);
    check_fields(name + ": query", endpoint.query, true, out);
    check_fields(name + ": body", endpoint.body, false, out);
    for (const Field& field : endpoint.path_fields) {
      if (std::find(route.segments.begin(), route.segments.end(), "{" + field.name + "}") ==
          route.segments.end()) {
        out.push_back(name + ": the path has no {" + field.name + "}");
      }
    }
    for (const std::string& segment : route.segments) {
      if (is_variable(segment) &&
          std::none_of(endpoint.path_fields.begin(), endpoint.path_fields.end(),
                       [&](const Field& f) { return f.name == variable_name(segment); })) {
        std::string wrong = name;
        wrong.append(": ").append(segment).append(" of the path is not described");
        out.push_back(std::move(wrong));
      }
    }
  }
  return out;
}

std::vector<const Router::Route*> Router::fitting(const std::vector<std::string>& path) const {
  // '0' literal, '1' variable, by segment: the smallest is the most literal from the left.
  std::string best;
  std::vector<const Route*> found;
  for (const Route& route : routes_) {
    if (route.segments.size() != path.size()) continue;
    std::string shape;
    for (std::size_t i = 0; i < path.size(); ++i) {
      if (is_variable(route.segments[i])) {
        if (path[i].empty()) break;
        shape += '1';
      } else if (route.segments[i] == path[i]) {
        shape += '0';
      } else {
        break;
      }
    }
    if (shape.size() != path.size()) continue;
    if (found.empty() || shape < best) {
      found.clear();
      best = shape;
    }
    if (shape == best) found.push_back(&route);
  }
  return found;
}

Reply Router::not_found(const std::vector<std::string>& path) const {
  std::string text;
  for (const std::string& segment : path) text += "/" + segment;
  std::vector<std::string_view> paths;
  for (const Endpoint& endpoint : endpoints_) paths.push_back(endpoint.path);
  // Comparing costs the product of the lengths, and this text comes from anyone.
  constexpr std::size_t kMostCompared = 128;
  const std::string_view nearest =
      text.size() > kMostCompared
          ? std::string_view{}
          : cc::nearest_name(text, paths, std::max<std::size_t>(3, text.size() / 3));
  std::string error = "path: nothing is at " + in_quotes(text);
  error += nearest.empty() ? "; " + std::string(kOpenApiPath) + " lists what there is"
                           : "; did you mean " + std::string(nearest) + "?";
  return refusal(404, {std::move(error)});
}

Admission Router::admit(const Incoming& incoming, const Caller& caller) const {
  Admission out;
  Target target;
  if (std::string wrong = read_target(incoming.target, target); !wrong.empty()) {
    out.refused = refusal(400, {std::move(wrong)});
    return out;
  }
  const std::vector<const Route*> routes = fitting(target.segments);
  if (routes.empty()) {
    out.refused = not_found(target.segments);
    return out;
  }
  const std::string_view method = incoming.method == "HEAD" ? "GET" : incoming.method;
  const Route* chosen = nullptr;
  for (const Route* route : routes) {
    const std::string& offered = endpoints_[route->endpoint].method;
    if (offered == method) chosen = route;
    if (!out.allow.empty()) out.allow += ", ";
    out.allow += offered == "GET" ? "GET, HEAD" : offered;
  }
  if (chosen == nullptr) {
    out.refused =
        refusal(405, {"method: " + in_quotes(incoming.method) + "; allowed: " + out.allow});
    return out;
  }
  out.allow.clear();
  const Endpoint& endpoint = endpoints_[chosen->endpoint];
  if (endpoint.writes && !caller.may_write) {
    out.refused = refusal(403, {"caller: " + caller.name + " may read here, not change; allowed: " +
                                "root, the daemon's own user, its group, tokens with the right "
                                "\"write\""});
    return out;
  }
  if (!incoming.body.empty() && !is_json_type(incoming.content_type)) {
    out.refused = refusal(
        415, {"content-type: " + in_quotes(incoming.content_type) + "; allowed: application/json"});
    return out;
  }

  std::vector<std::string> errors;
  out.request.caller = caller;
  for (std::size_t i = 0; i < chosen->segments.size(); ++i) {
    if (!is_variable(chosen->segments[i])) continue;
    const std::string_view name = variable_name(chosen->segments[i]);
    for (const Field& field : endpoint.path_fields) {
      if (field.name == name) check_text(field, target.segments[i], "path", errors);
    }
    out.request.path.insert_or_assign(std::string(name), target.segments[i]);
  }
  check_query(endpoint.query, target.query, out.request, errors);
  if (endpoint.path == kEventsPath) {
    std::vector<std::string> topics;
    std::string wrong = read_topics(out.request.in_query("topics"), topics);
    if (!wrong.empty()) errors.push_back(std::move(wrong));
  }
  std::string wrong_json;
  if (!incoming.body.empty()) wrong_json = read_json(incoming.body, out.request.body);
  if (!wrong_json.empty()) {
    errors.push_back(std::move(wrong_json));
  } else {
    check_body(endpoint.body, out.request.body, errors);
  }
  if (errors.empty()) {
    out.endpoint = &endpoint;
  } else {
    out.refused = refusal(400, std::move(errors));
  }
  return out;
}

}  // namespace paceline::daemon
