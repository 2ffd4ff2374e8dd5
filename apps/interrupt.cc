#include "apps/interrupt.h"

#include <unistd.h>

namespace headrace {
namespace {

// A signal handler reaches nothing else.
volatile std::sig_atomic_t g_interrupts = 0;

void on_interrupt(int) {
  constexpr int kPatience = 3;
  g_interrupts = g_interrupts + 1;
  if (g_interrupts >= kPatience) _exit(130);
}

}  // namespace

InterruptGuard::InterruptGuard() {
  g_interrupts = 0;
  struct sigaction action = {};
  action.sa_handler = on_interrupt;
  sigaction(SIGINT, &action, &before_);
}

InterruptGuard::~InterruptGuard() { sigaction(SIGINT, &before_, nullptr); }

bool InterruptGuard::interrupted() const noexcept { return g_interrupts > 0; }

}  // namespace headrace
