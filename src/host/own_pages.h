// This process's own program pages.
#pragma once

namespace sandy::host {

// Gives the pages of this program's code back: what starting needed and serving doesn't is not resident any more, the rest comes back from
// the page cache by itself. For a process that lives long and mostly waits.
void release_code_pages();

}  // namespace sandy::host
