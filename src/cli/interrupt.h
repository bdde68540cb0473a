// Ctrl-C as a request to stop after the step that is running. A second one ends the program at once.
#pragma once

namespace brigade::cli {

// Installs the handler; from then on the first SIGINT only sets the flag.
void catch_interrupts();

bool interrupted() noexcept;

}  // namespace brigade::cli
