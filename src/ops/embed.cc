#include "ops/embed.h"

namespace headrace {
namespace ref {
namespace {

void embed(const EmbedArgs& args, RowRange rows) noexcept {
  const int64_t dim = args.table.k;
  for (int64_t r = rows.begin; r < rows.end; ++r) {
    float* y = args.y + r * dim;
    unpack_weight_row(args.table, static_cast<int64_t>(args.tokens[r]), y);
    for (int64_t i = 0; i < dim; ++i) y[i] *= args.scale;
  }
}

}  // namespace
}  // namespace ref

constinit const OpTable<EmbedFn> kEmbed{"embed", {{Isa::kRef, ref::embed}}};

}  // namespace headrace
