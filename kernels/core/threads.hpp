// Threads that belong to one engine: they share the items of a loop, and sleep between calls.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>

namespace spikformer::engine {

constexpr std::size_t most_threads = 1024;

#if defined(__wasm__)  // one thread, and a library without mutexes
struct Mutex {
    void lock() {}
    void unlock() {}
};
#else
using Mutex = std::mutex;
#endif

class Threads {
public:
    explicit Threads(std::size_t count);
    ~Threads();
    Threads(const Threads&) = delete;
    Threads& operator=(const Threads&) = delete;

    std::size_t count() const { return count_; }

    // work(item, thread) for every item, on the caller's thread too; returns when all are done. `work` must not throw.
    template <typename Work>
    void for_each(std::size_t num_items, const Work& work) {
        run(num_items, [](const void* context, std::size_t item, std::size_t thread) {
            (*static_cast<const Work*>(context))(item, thread);
        }, &work);
    }

private:
    using Call = void (*)(const void* context, std::size_t item, std::size_t thread);
    struct Crew;

    void run(std::size_t num_items, Call call, const void* context);

    std::size_t count_;
    std::unique_ptr<Crew> crew_;
};

}  // namespace spikformer::engine
