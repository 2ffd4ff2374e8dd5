#include "apps/line_editor.h"

#include <histedit.h>
#include <termios.h>
#include <unistd.h>

#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "base/cache_folder.h"

namespace headrace {

namespace {

/// While it lives, keys come one by one, Ctrl-C and Ctrl-D like others. The editor wants it so as well, but says so
/// only once its prompt is out: keys that came between would be lost or end the program.
class PlainKeys {
 public:
  PlainKeys() : is_terminal_(tcgetattr(STDIN_FILENO, &before_) == 0) {
    if (!is_terminal_) return;
    termios mode = before_;
    mode.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO | ISIG);
    mode.c_cc[VMIN] = 1;
    mode.c_cc[VTIME] = 0;
    tcsetattr(STDIN_FILENO, TCSADRAIN, &mode);
  }
  ~PlainKeys() {
    if (is_terminal_) tcsetattr(STDIN_FILENO, TCSADRAIN, &before_);
  }
  PlainKeys(const PlainKeys&) = delete;
  PlainKeys& operator=(const PlainKeys&) = delete;

 private:
  termios before_{};
  bool is_terminal_;
};

}  // namespace

struct LineEditor::State {
  std::string prompt;
  std::string history_path;
  EditLine* editor = nullptr;
  History* history = nullptr;
  bool interrupted = false;

  static char* prompt_of(EditLine* editor) { return of(editor).prompt.data(); }
  /// Bound to Ctrl-C: ends the line and notes why.
  static unsigned char interrupt(EditLine* editor, int) {
    of(editor).interrupted = true;
    return CC_NEWLINE;
  }

 private:
  static State& of(EditLine* editor) {
    void* state = nullptr;
    el_get(editor, EL_CLIENTDATA, &state);
    return *static_cast<State*>(state);
  }
};

LineEditor::LineEditor(std::string prompt, std::string history_path) : state_(std::make_unique<State>()) {
  constexpr int kHistoryLines = 1000;
  State& s = *state_;
  s.prompt = std::move(prompt);
  s.history_path = std::move(history_path);
  // The editor takes bytes apart by the locale; containers often have none.
  const char* locale = std::setlocale(LC_CTYPE, "");
  if (locale == nullptr || std::string_view(locale) == "C" || std::string_view(locale) == "POSIX") {
    std::setlocale(LC_CTYPE, "C.UTF-8");
  }
  HistEvent event;
  s.history = history_init();
  history(s.history, &event, H_SETSIZE, kHistoryLines);
  history(s.history, &event, H_SETUNIQUE, 1);
  if (!s.history_path.empty()) history(s.history, &event, H_LOAD, s.history_path.c_str());

  s.editor = el_init("headrace", stdin, stdout, stderr);
  el_set(s.editor, EL_CLIENTDATA, &s);
  el_set(s.editor, EL_PROMPT, &State::prompt_of);
  el_set(s.editor, EL_EDITOR, "emacs");
  el_set(s.editor, EL_HIST, history, s.history);
  el_set(s.editor, EL_SETTY, "-d", "-isig", nullptr);
  // The narrow form of this call copies the names and never frees them.
  el_wset(s.editor, EL_ADDFN, L"headrace-interrupt", L"Give up the line", &State::interrupt);
  el_set(s.editor, EL_BIND, "^C", "headrace-interrupt", nullptr);
  el_set(s.editor, EL_BIND, "^R", "em-inc-search-prev", nullptr);
}

LineEditor::~LineEditor() {
  HistEvent event;
  if (!state_->history_path.empty()) {
    std::error_code ignored;
    std::filesystem::create_directories(std::filesystem::path(state_->history_path).parent_path(), ignored);
    history(state_->history, &event, H_SAVE, state_->history_path.c_str());
  }
  el_end(state_->editor);
  history_end(state_->history);
}

LineEditor::Event LineEditor::read(std::string& line) {
  State& s = *state_;
  s.interrupted = false;
  const PlainKeys plain_keys;
  int length = 0;
  const char* text = el_gets(s.editor, &length);
  line.assign(text != nullptr && length > 0 ? std::string_view(text, static_cast<size_t>(length)) : std::string_view());
  while (!line.empty() && (line.back() == '\n' || line.back() == '\r')) line.pop_back();
  if (s.interrupted) return Event::kInterrupt;
  if (text == nullptr || length <= 0) return Event::kEnd;
  HistEvent event;
  if (!line.empty()) history(s.history, &event, H_ENTER, line.c_str());
  return Event::kLine;
}

std::string chat_history_path() {
  const std::optional<std::filesystem::path> cache = cache_folder();
  return cache ? (*cache / "chat-history").string() : std::string();
}

}  // namespace headrace
