#include "text/chat_renderer.h"

#include "text/rust_ffi.h"
#include "text/rust_value.h"

namespace headrace {
namespace {

void check(const HrError& error) {
  using Kind = TemplateError::Kind;
  if (error.kind == RustErrorKind::kNone) return;
  std::string message = take_string(error.message);
  switch (error.kind) {
    case RustErrorKind::kInternal:
      throw Error(ErrorCode::kInternal, std::move(message));
    case RustErrorKind::kTemplateSyntax:
      throw TemplateError(Kind::kSyntax, std::move(message));
    case RustErrorKind::kTemplateRaised:
      throw TemplateError(Kind::kRaised, std::move(message));
    default:
      throw TemplateError(Kind::kRuntime, std::move(message));
  }
}

/// HrFormatTime over a std::tm.
size_t format_time(const void* context, HrSlice format, uint8_t* out, size_t capacity) {
  const std::string terminated(view_of(format));
  return std::strftime(reinterpret_cast<char*>(out), capacity, terminated.c_str(),
                       static_cast<const std::tm*>(context));
}

std::tm local_time_now() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  return local;
}

}  // namespace

void ChatRenderer::Free::operator()(HrTemplate* chat_template) const noexcept { hr_template_free(chat_template); }
ChatRenderer::ChatRenderer(ChatRenderer&&) noexcept = default;
ChatRenderer& ChatRenderer::operator=(ChatRenderer&&) noexcept = default;
ChatRenderer::~ChatRenderer() = default;

ChatRenderer::ChatRenderer(std::string_view name, std::string_view source) {
  HrError error{};
  rust_.reset(hr_template_new(slice_of(name), slice_of(source), &error));
  check(error);
}

std::string ChatRenderer::render(const ChatInput& input) const {
  const std::tm now = input.now ? *input.now : local_time_now();
  const HrTemplateInput raw{.messages = slice_of(input.messages),
                            .tools = slice_of(input.tools),
                            .variables = slice_of(input.variables),
                            .add_generation_prompt = input.add_generation_prompt,
                            .format_time = format_time,
                            .time_context = &now};
  HrError error{};
  const HrBuffer rendered = hr_template_render(rust_.get(), &raw, &error);
  check(error);
  return take_string(rendered);
}

}  // namespace headrace
