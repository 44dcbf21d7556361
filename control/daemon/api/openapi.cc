#include "control/daemon/api/openapi.h"

#include <cmath>
#include <cstdint>

#include "control/daemon/api/router.h"

namespace paceline::daemon {

namespace {

Json bound(double value) {
  if (value == std::floor(value) && std::abs(value) < 1e15) return static_cast<std::int64_t>(value);
  return value;
}

Json schema_of(const Field& field) {
  Json schema = Json::object();
  switch (field.type) {
    case FieldType::text:
      schema["type"] = "string";
      break;
    case FieldType::whole:
      schema["type"] = "integer";
      break;
    case FieldType::number:
      schema["type"] = "number";
      break;
    case FieldType::flag:
      schema["type"] = "boolean";
      break;
    case FieldType::object:
      schema["type"] = "object";
      if (!field.of.empty()) schema["additionalProperties"] = schema_of(field.of.front());
      break;
    case FieldType::list:
      schema["type"] = "array";
      schema["items"] = field.of.empty() ? Json::object() : schema_of(field.of.front());
      break;
  }
  if (!field.one_of.empty()) schema["enum"] = field.one_of;
  if (field.most > field.least) {
    const bool text = field.type == FieldType::text;
    const bool list = field.type == FieldType::list;
    schema[text ? "minLength" : list ? "minItems" : "minimum"] = bound(field.least);
    schema[text ? "maxLength" : list ? "maxItems" : "maximum"] = bound(field.most);
  }
  return schema;
}

Json parameter(const Field& field, const char* place) {
  Json out = Json::object();
  out["name"] = field.name;
  out["in"] = place;
  out["required"] = field.required || std::string_view(place) == "path";
  out["description"] = field.meaning;
  out["schema"] = schema_of(field);
  return out;
}

Json body_of(const std::vector<Field>& fields) {
  Json properties = Json::object();
  Json required = Json::array();
  for (const Field& field : fields) {
    properties[field.name] = schema_of(field);
    properties[field.name]["description"] = field.meaning;
    if (field.required) required.push_back(field.name);
  }
  Json schema{{"type", "object"}, {"additionalProperties", false}};
  schema["properties"] = properties;
  if (!required.empty()) schema["required"] = required;
  Json out = Json::object();
  out["required"] = !required.empty();
  out["content"]["application/json"]["schema"] = schema;
  return out;
}

// "putNicsNicParameters" of PUT /v1/nics/{nic}/parameters.
std::string operation_id(const Endpoint& endpoint) {
  std::string id;
  for (const char c : endpoint.method) id += static_cast<char>(c - 'A' + 'a');
  bool capital = true;
  std::string_view path = endpoint.path;
  if (path.starts_with("/v1")) path.remove_prefix(3);
  for (const char c : path) {
    const bool small = c >= 'a' && c <= 'z';
    if (!small && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9')) {
      capital = true;
      continue;
    }
    id += capital && small ? static_cast<char>(c - 'a' + 'A') : c;
    capital = false;
  }
  return id;
}

const char* reply_type(const Endpoint& endpoint) {
  if (endpoint.path == kEventsPath) return "text/event-stream";
  return endpoint.path.starts_with("/v") ? "application/json" : "text/plain";
}

Json operation(const Endpoint& endpoint) {
  Json out = Json::object();
  out["operationId"] = operation_id(endpoint);
  out["summary"] = endpoint.summary;
  out["tags"] = Json::array({endpoint.tag});
  if (endpoint.writes) out["description"] = "Needs the right to write.";
  Json parameters = Json::array();
  for (const Field& field : endpoint.path_fields) parameters.push_back(parameter(field, "path"));
  for (const Field& field : endpoint.query) parameters.push_back(parameter(field, "query"));
  if (!parameters.empty()) out["parameters"] = parameters;
  if (!endpoint.body.empty()) out["requestBody"] = body_of(endpoint.body);
  Json& good = out["responses"]["200"];
  good["description"] = endpoint.answer.empty() ? "Done." : endpoint.answer;
  const std::string_view type = reply_type(endpoint);
  good["content"][std::string(type)]["schema"] =
      type == "application/json" ? Json::object() : Json{{"type", "string"}};
  out["responses"]["default"] = {{"$ref", "#/components/responses/Refused"}};
  return out;
}

}  // namespace

Json openapi_document(const Endpoints& endpoints, std::string_view version) {
  const Router router(endpoints);
  Json document = Json::object();
  document["openapi"] = "3.0.3";
  document["info"] = {
      {"title", "pacelined"},
      {"version", version},
      {"description",
       "The host daemon of Paceline: telemetry, parameters, the tuner and experiments. Served on a "
       "Unix socket; on TCP with TLS and a token. Unknown members and parameters are refused."}};
  document["servers"] = Json::array({{{"url", "http://localhost"}}});
  document["security"] = Json::array({Json::object(), {{"token", Json::array()}}});
  Json& components = document["components"];
  components["securitySchemes"]["token"] = {{"type", "http"}, {"scheme", "bearer"}};
  components["schemas"]["Errors"] = {
      {"type", "object"},
      {"required", {"errors"}},
      {"properties",
       {{"errors",
         {{"type", "array"},
          {"items", {{"type", "string"}}},
          {"description", "a sentence each: the field, its value, what is allowed"}}}}}};
  Json& refused = components["responses"]["Refused"];
  refused["description"] = "400 and above: nothing was changed";
  refused["content"]["application/json"]["schema"] = {{"$ref", "#/components/schemas/Errors"}};
  Json& paths = document["paths"];
  paths = Json::object();
  for (const Endpoint& endpoint : router.endpoints()) {
    std::string method;
    for (const char c : endpoint.method) method += static_cast<char>(c - 'A' + 'a');
    paths[endpoint.path][method] = operation(endpoint);
  }
  return document;
}

std::string openapi_text(const Endpoints& endpoints, std::string_view version) {
  return openapi_document(endpoints, version).dump(2) + "\n";
}

}  // namespace paceline::daemon
