// Loads a model and streams the continuation of a prompt: generate MODEL "Once upon a time"
#include <headrace/headrace.h>

#include <iostream>

int main(int argc, char** argv) try {
  if (argc != 3) throw headrace::Error(headrace::ErrorCode::kInvalidArgument, "usage: generate MODEL PROMPT");
  headrace::Model model = headrace::Model::load(argv[1]);
  model.generate(argv[2], {.temperature = 0, .max_tokens = 64}, [](std::string_view piece) {
    std::cout << piece << std::flush;
    return true;
  });
} catch (const headrace::Error& error) {
  return std::cerr << error.what() << '\n', 1;
}
