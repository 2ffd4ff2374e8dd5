#include "openai/tool_fields.h"

#include <algorithm>

#include "base/cat.h"
#include "base/error.h"

namespace headrace::openai {
namespace {

constexpr size_t kMaxTools = 128;  // as at OpenAI
constexpr size_t kMaxNameLength = 64;
constexpr size_t kMaxSchemaBytes = 64 * 1024;  // of one tool

bool is_name(std::string_view name) {
  const auto is_allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  };
  return !name.empty() && name.size() <= kMaxNameLength && std::ranges::all_of(name, is_allowed);
}

/// The schema of the arguments. Their depth is bounded by that of the body, and patterns by the grammar's compiler.
std::string read_parameters(const Fields& function) {
  const Json* parameters = function.object("parameters");
  if (parameters == nullptr) return R"({"type":"object"})";
  Json schema = *parameters;
  const auto type = schema.find("type");
  if (type == schema.end() || type->is_null()) {
    schema["type"] = "object";
  } else if (*type != "object") {
    function.refuse("parameters", "a JSON schema of type object");
  }
  std::string text = to_text(schema);
  if (text.size() > kMaxSchemaBytes) function.refuse("parameters", cat("at most ", kMaxSchemaBytes, " bytes"));
  return text;
}

Tool read_function(const Fields& function) {
  const std::optional<std::string> name = function.string("name");
  if (!name || !is_name(*name)) function.refuse("name", "1 to 64 letters, digits, underscores and dashes");
  (void)function.string("description");
  return {*name, read_parameters(function)};
}

void add_tool(ToolFields& fields, const Fields& function) {
  Tool tool = read_function(function);
  if (std::ranges::find(fields.tools, tool.name, &Tool::name) != fields.tools.end()) {
    function.refuse("name", "a name that no other tool has");
  }
  fields.tools.push_back(std::move(tool));
}

void check_count(const Fields& body, std::string_view name, const Json& list) {
  if (list.size() > kMaxTools) body.refuse(name, cat("at most ", kMaxTools, " of them"));
}

/// Tools as the template gets them, in the newer format.
Json read_lists(const Fields& body, ToolFields& fields) {
  const Json* tools = body.array("tools");
  const Json* functions = body.array("functions");
  if (tools != nullptr && functions != nullptr) body.refuse("functions", "not both these and tools");
  Json list = Json::array();
  if (functions != nullptr) {
    check_count(body, "functions", *functions);
    for (size_t i = 0; i < functions->size(); ++i) {
      add_tool(fields, Fields((*functions)[i], cat("functions[", i, "]")));
      list.push_back({{"type", "function"}, {"function", (*functions)[i]}});
    }
  }
  if (tools == nullptr) return list;
  check_count(body, "tools", *tools);
  for (size_t i = 0; i < tools->size(); ++i) {
    const Fields tool((*tools)[i], cat("tools[", i, "]"));
    if (tool.string("type").value_or("function") != "function") tool.refuse("type", "function");
    const Json* function = tool.object("function");
    if (function == nullptr) tool.refuse("function", "an object with a name");
    add_tool(fields, Fields(*function, tool.path("function")));
    list.push_back((*tools)[i]);
  }
  return list;
}

void choose_named(const Fields& holder, ToolFields& fields) {
  const std::optional<std::string> name = holder.string("name");
  if (!name) holder.refuse("name", "the name of one of the tools");
  const auto named = std::ranges::find(fields.tools, *name, &Tool::name);
  if (named == fields.tools.end()) holder.refuse("name", "the name of one of the tools");
  fields.tools = {*named};
  fields.choice = ToolFields::Choice::kRequired;
  fields.parallel = false;
}

void read_choice(const Fields& body, ToolFields& fields) {
  const bool is_old = fields.old_form;
  const char* const name = is_old ? "function_call" : "tool_choice";
  const Json* choice = body.find(name);
  fields.choice = fields.tools.empty() ? ToolFields::Choice::kNone : ToolFields::Choice::kAuto;
  if (choice == nullptr || *choice == "auto") return;
  if (*choice == "none") {
    fields.choice = ToolFields::Choice::kNone;
    return;
  }
  if (fields.tools.empty()) body.refuse(name, "none or auto where there are no tools");
  if (*choice == "required" && !is_old) {
    fields.choice = ToolFields::Choice::kRequired;
  } else if (choice->is_object() && is_old) {
    choose_named(Fields(*choice, name), fields);
  } else if (choice->is_object()) {
    const Fields named(*choice, name);
    if (named.string("type").value_or("function") != "function") named.refuse("type", "function");
    const Json* function = named.object("function");
    if (function == nullptr) named.refuse("function", "an object with the name of a tool");
    choose_named(Fields(*function, named.path("function")), fields);
  } else {
    body.refuse(name, is_old ? "none, auto or the name of a function" : "none, auto, required or a function's name");
  }
}

}  // namespace

ToolFields read_tools(const Fields& body) {
  ToolFields fields;
  const Json list = read_lists(body, fields);
  fields.old_form = body.has("functions");
  // The older fields know of one call only.
  fields.parallel = body.boolean("parallel_tool_calls").value_or(true) && !fields.old_form;
  read_choice(body, fields);
  if (fields.choice == ToolFields::Choice::kNone) {
    fields.tools.clear();
  } else {
    fields.text = to_text(list);
  }
  return fields;
}

}  // namespace headrace::openai
