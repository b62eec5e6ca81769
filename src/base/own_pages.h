// This process's own program pages.
#pragma once

namespace sandy {

// Gives the pages of this program's code and constants back, and of its libraries': what it ran once is not resident any more, the rest comes back
// from the page cache by itself. For a process that lives long and mostly waits.
void release_code_pages();

}  // namespace sandy
