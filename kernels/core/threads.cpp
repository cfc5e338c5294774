#include "threads.hpp"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <new>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <vector>

#if defined(__unix__) || defined(__APPLE__)
#include <csignal>
#include <unistd.h>
#endif

namespace spikformer::engine {
namespace {

constexpr int spins = 4000;  // some tens of microseconds: layers follow each other faster than a thread can be woken

long process_id() {
#if defined(__unix__) || defined(__APPLE__)
    return static_cast<long>(getpid());
#else
    return 0;
#endif
}

// While it lives, threads that are started take no signals: those are for the program's own, above all Python's main.
class WithoutSignals {
#if defined(__unix__) || defined(__APPLE__)
public:
    WithoutSignals() {
        sigset_t all;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    ~WithoutSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

private:
    sigset_t before_;
#endif
};

void pause() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
}

}  // namespace

struct Threads::Crew {
    const long owner = process_id();
    std::vector<std::thread> threads;
    std::mutex mutex;
    std::condition_variable wake;
    std::atomic<std::size_t> loop{0};  // counts loops; a change is the signal to start
    std::atomic<std::size_t> next{0};
    std::atomic<std::size_t> working{0};
    std::atomic<bool> stop{false};
    std::size_t num_items = 0;
    Call call = nullptr;
    const void* context = nullptr;

    explicit Crew(std::size_t helpers) {
        threads.reserve(helpers);
        [[maybe_unused]] const WithoutSignals guard;
        try {
            for (std::size_t thread = 1; thread <= helpers; ++thread) {
                threads.emplace_back([this, thread] { help(thread); });
            }
        } catch (const std::system_error&) {  // those that did start must be joined, now and below
            join();
            throw std::runtime_error("The system starts no more threads; compile or load the engine with fewer.");
        } catch (const std::bad_alloc&) {
            join();
            throw;
        }
    }

    ~Crew() { join(); }

    void join() {
        {
            const std::lock_guard<std::mutex> lock(mutex);
            stop = true;
            ++loop;
        }
        wake.notify_all();
        for (std::thread& thread : threads) {
            thread.join();
        }
    }

    void take_items(std::size_t thread) {
        for (std::size_t item = next++; item < num_items; item = next++) {
            call(context, item, thread);
        }
    }

    void help(std::size_t thread) {
        for (std::size_t seen = 0;;) {
            for (int spin = 0; spin < spins && loop.load(std::memory_order_acquire) == seen; ++spin) {
                pause();
            }
            if (loop.load(std::memory_order_acquire) == seen) {
                std::unique_lock<std::mutex> lock(mutex);
                wake.wait(lock, [&] { return loop.load() != seen; });
            }
            ++seen;
            if (stop) {
                return;
            }
            take_items(thread);
            --working;
        }
    }
};

Threads::Threads(std::size_t count) : count_(count) {}

Threads::~Threads() {
    if (crew_ && crew_->owner != process_id()) {
        crew_.release();  // after a fork its threads do not exist here; there is nothing to wait for
    }
}

void Threads::run(std::size_t num_items, Call call, const void* context) {
    if (count_ <= 1 || num_items <= 1) {
        for (std::size_t item = 0; item < num_items; ++item) {
            call(context, item, 0);
        }
        return;
    }
    if (crew_ && crew_->owner != process_id()) {
        crew_.release();
    }
    if (!crew_) {
        crew_ = std::make_unique<Crew>(count_ - 1);
    }
    Crew& crew = *crew_;
    {
        const std::lock_guard<std::mutex> lock(crew.mutex);
        crew.num_items = num_items;
        crew.call = call;
        crew.context = context;
        crew.next = 0;
        crew.working = crew.threads.size();
        ++crew.loop;
    }
    crew.wake.notify_all();
    crew.take_items(0);
    for (int spin = 0; crew.working.load(std::memory_order_acquire) != 0; ++spin) {
        if (spin < spins) {
            pause();
        } else {
            std::this_thread::yield();  // another program has the core that a thread of ours waits for
        }
    }
}

}  // namespace spikformer::engine
