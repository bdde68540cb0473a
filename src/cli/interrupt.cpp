#include "interrupt.h"

#include <csignal>

namespace brigade::cli {
namespace {

volatile std::sig_atomic_t requested = 0;

}  // namespace

void catch_interrupts() {
  struct sigaction action {};
  action.sa_handler = [](int) { requested = 1; };
  action.sa_flags = static_cast<int>(SA_RESETHAND);  // the second one finds the default again
  sigaction(SIGINT, &action, nullptr);
}

bool interrupted() noexcept { return requested != 0; }

}  // namespace brigade::cli
