#include "base/error.h"
#include "cluster/model_manifest.h"
#include "cluster/part_journal.h"

/// A manifest, and a journal.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace headrace;
  using namespace headrace::cluster;
  const auto bytes = std::as_bytes(std::span(data, size));
  HR_CHECK(read_journal(bytes, 100).size() == 100);
  const ModelManifest manifest = parse_manifest({reinterpret_cast<const char*>(data), size});
  for (const ManifestRange& range : manifest.ranges) {
    const ManifestFile& file = manifest.files.at(range.file);
    HR_CHECK(range.offset >= 0 && range.bytes > 0 && range.offset + range.bytes <= file.bytes);
    HR_CHECK(range.bytes <= kMaxRangeBytes);
    HR_CHECK(file.name.find('/') == std::string::npos && file.name != "..");
  }
  HR_CHECK(parse_manifest(manifest_json(manifest)) == manifest);
  return 0;
}
