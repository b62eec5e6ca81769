// Exceptions without _dl_find_object(3), so that a program built with glibc 2.35 or newer runs with 2.34 as well.
//
// libgcc's unwinder, which is linked in, asks that function for the unwind tables of the code at an address. A program that defines it doesn't need
// glibc's. This one walks the list of loaded objects, as the unwinder of older compilers does: slower with many libraries, of which there are none.
#include <dlfcn.h>
#include <link.h>

#include <cstddef>

#ifdef DLFO_EH_SEGMENT_TYPE

namespace {

struct Search {
  ElfW(Addr) address;
  dl_find_object* result;
};

int look_in(dl_phdr_info* object, std::size_t, void* argument) {
  auto& search = *static_cast<Search*>(argument);
  const ElfW(Phdr)* tables = nullptr;
  bool holds_address = false;
  for (const ElfW(Phdr)* header = object->dlpi_phdr; header != object->dlpi_phdr + object->dlpi_phnum; ++header) {
    const ElfW(Addr) start = object->dlpi_addr + header->p_vaddr;
    if (header->p_type == DLFO_EH_SEGMENT_TYPE) tables = header;
    if (header->p_type != PT_LOAD || search.address < start || search.address - start >= header->p_memsz) continue;
    holds_address = true;
    search.result->dlfo_map_start = reinterpret_cast<void*>(start);
    search.result->dlfo_map_end = reinterpret_cast<void*>(start + header->p_memsz);
  }
  if (!holds_address || tables == nullptr) return 0;
  search.result->dlfo_eh_frame = reinterpret_cast<void*>(object->dlpi_addr + tables->p_vaddr);
  return 1;
}

}  // namespace

// The link map is left out: the unwinder doesn't use it.
extern "C" __attribute__((visibility("hidden"))) int _dl_find_object(void* address, dl_find_object* result) noexcept {
  *result = {};
  Search search{reinterpret_cast<ElfW(Addr)>(address), result};
  return ::dl_iterate_phdr(look_in, &search) == 1 ? 0 : -1;
}

#endif
