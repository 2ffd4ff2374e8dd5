#include "base/build_id.h"

#include <elf.h>
#include <link.h>

#include <cstring>

#include "base/ascii_text.h"

namespace headrace {
namespace {

/// The descriptor of the note NT_GNU_BUILD_ID of the owner "GNU" in a note segment; empty where it has none. Each note:
/// three words (length of owner and descriptor, type), owner, descriptor, both padded to 4 bytes.
std::string find_build_id(const char* note, size_t size) {
  const auto padded = [](size_t n) { return (n + 3) / 4 * 4; };
  size_t at = 0;
  while (at + sizeof(ElfW(Nhdr)) <= size) {
    ElfW(Nhdr) head;
    std::memcpy(&head, note + at, sizeof head);
    const size_t owner = at + sizeof head, descriptor = owner + padded(head.n_namesz);
    if (descriptor + head.n_descsz > size) break;
    if (head.n_type == NT_GNU_BUILD_ID && head.n_namesz == 4 && std::memcmp(note + owner, "GNU", 4) == 0) {
      return {note + descriptor, head.n_descsz};
    }
    at = descriptor + padded(head.n_descsz);
  }
  return {};
}

/// The first object that the loader lists is the program.
int visit_program(dl_phdr_info* info, size_t, void* found) {
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = info->dlpi_phdr[i];
    if (segment.p_type != PT_NOTE) continue;
    const auto* note = reinterpret_cast<const char*>(info->dlpi_addr + segment.p_vaddr);
    auto& id = *static_cast<std::string*>(found);
    if (id = find_build_id(note, segment.p_memsz); !id.empty()) break;
  }
  return 1;
}

}  // namespace

std::string build_id() {
  std::string bytes;
  dl_iterate_phdr(visit_program, &bytes);
  return hex_text({reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size()});
}

}  // namespace headrace
