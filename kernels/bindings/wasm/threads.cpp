// Loops on the caller's thread: a page that is opened from disk has no memory that threads could share.
#include "core/threads.hpp"

namespace spikformer::engine {

struct Threads::Crew {};

Threads::Threads(std::size_t) : count_(1) {}

Threads::~Threads() = default;

void Threads::run(std::size_t num_items, Call call, const void* context) {
    for (std::size_t item = 0; item < num_items; ++item) {
        call(context, item, 0);
    }
}

}  // namespace spikformer::engine
