#include "apps/chat_session.h"

#include <fmt/format.h>

#include <cstdio>

#include "apps/answer.h"
#include "apps/interrupt.h"
#include "apps/line_editor.h"
#include "base/error.h"

namespace headrace {
namespace {

constexpr std::string_view kCommandHelp =
    "/help   this text\n"
    "/reset  forget the conversation\n"
    "/exit   leave; so does Ctrl-D\n"
    "A line that ends in \\ goes on in the next one. Ctrl-C stops an answer.\n";

class ChatSession {
 public:
  ChatSession(Model& model, const ChatSettings& settings) : model_(model), settings_(settings) { reset(); }

  void run() {
    // Between an answer and the next prompt a late Ctrl-C must not end the program either.
    const InterruptGuard guard;
    fmt::print(stderr, "Type a message; /help lists the commands.\n");
    LineEditor editor("> ", chat_history_path());
    std::string message;
    for (;;) {
      std::string line;
      const LineEditor::Event event = editor.read(line);
      if (event == LineEditor::Event::kEnd) break;
      if (event == LineEditor::Event::kInterrupt) {
        if (line.empty() && message.empty()) fmt::print(stderr, "Ctrl-D or /exit leaves.\n");
        message.clear();
        continue;
      }
      if (line.ends_with('\\')) {
        message += line.substr(0, line.size() - 1) + "\n";
        continue;
      }
      message += line;
      if (!take(message)) return;
      message.clear();
    }
    std::fputc('\n', stderr);
  }

 private:
  void reset() {
    messages_.clear();
    if (!settings_.system.empty()) messages_.push_back({"system", settings_.system});
  }

  /// False: leave.
  bool take(const std::string& message) {
    if (message.find_first_not_of(" \t\n") == std::string::npos) return true;
    if (message == "/exit" || message == "/quit") return false;
    if (message == "/help") {
      fmt::print(stderr, "{}", kCommandHelp);
    } else if (message == "/reset") {
      reset();
      fmt::print(stderr, "The conversation is forgotten.\n");
    } else if (message[0] == '/' && message.find_first_of(" /\n", 1) == std::string::npos) {
      fmt::print(stderr, "unknown command {}; /help lists the commands\n", printable(message));
    } else {
      answer(message);
    }
    return true;
  }

  void answer(const std::string& message) {
    try {
      if (settings_.raw) {
        (void)stream_answer([&](const TextSink& sink) { return model_.generate(message, settings_.params, sink); },
                            settings_.quiet);
        return;
      }
      messages_.push_back({"user", message});
      Generation answer = stream_answer(
          [&](const TextSink& sink) { return model_.chat(messages_, settings_.params, sink); }, settings_.quiet);
      messages_.push_back({"assistant", std::move(answer.text)});
    } catch (const Error& error) {
      // A conversation that has grown too long, or that the template refuses: the rest of it stays.
      if (!settings_.raw) messages_.pop_back();
      fmt::print(stderr, "headrace: {}; /reset begins a new conversation\n", error.message());
    }
  }

  Model& model_;
  const ChatSettings& settings_;
  std::vector<Message> messages_;
};

}  // namespace

void run_chat_session(Model& model, const ChatSettings& settings) { ChatSession(model, settings).run(); }

}  // namespace headrace
