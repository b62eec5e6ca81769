// A launcher that was started before it was known what it is to do.
#pragma once

namespace sandy::launcher {

// Waits for the arguments that come over `socket` (base/launch_orders.h), as main() has them, and for their descriptors. Ends where there is nothing to
// start, or its caller is gone.
char** take_orders(int socket, int* count);

}  // namespace sandy::launcher
