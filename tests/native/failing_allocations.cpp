// Preloaded into a process (LD_PRELOAD): fails the n-th allocation, or thread to be started, of one library.
//
// An allocation is the library's if the call comes from its code, or from that of the C++ library, which allocates the
// strings of its callers. All others are served as ever.
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>

extern "C" void* __libc_malloc(std::size_t size);
extern "C" void* __libc_calloc(std::size_t count, std::size_t size);
extern "C" void* __libc_realloc(void* memory, std::size_t size);
extern "C" void* __libc_memalign(std::size_t alignment, std::size_t size);

namespace {

struct Range {
    std::uintptr_t begin = 0, end = 0;
};
Range ranges[2];
std::atomic<long> left{-1};  // allocations until one fails; below 0: none does
std::atomic<long> seen{0};

int find_ranges(dl_phdr_info* info, std::size_t, void* name) {
    const char* const names[2] = {static_cast<const char*>(name), "libstdc++"};
    for (int i = 0; i < 2; ++i) {
        for (int header = 0; std::strstr(info->dlpi_name, names[i]) && header < info->dlpi_phnum; ++header) {
            const auto& segment = info->dlpi_phdr[header];
            if (segment.p_type == PT_LOAD && (segment.p_flags & PF_X)) {
                ranges[i] = {info->dlpi_addr + segment.p_vaddr, info->dlpi_addr + segment.p_vaddr + segment.p_memsz};
            }
        }
    }
    return 0;
}

bool fails(const void* caller) {
    const auto address = reinterpret_cast<std::uintptr_t>(caller);
    for (const Range& range : ranges) {
        if (address >= range.begin && address < range.end) {
            ++seen;
            return left.load() >= 0 && left-- == 0;
        }
    }
    return false;
}

void* new_or_throw(std::size_t size, std::size_t alignment, const void* caller) {
    void* memory = fails(caller) ? nullptr : __libc_memalign(alignment, size);
    if (memory == nullptr) {
        throw std::bad_alloc();
    }
    return memory;
}

}  // namespace

extern "C" {

// The library's file name holds `name`. Returns whether it and the C++ library were found.
bool watch_allocations(const char* name) {
    dl_iterate_phdr(find_ranges, const_cast<char*>(name));
    return ranges[0].end > 0 && ranges[1].end > 0;
}

// The allocation after `number` others fails, once; below 0, none.
void fail_allocation(long number) {
    left = number;
    seen = 0;
}

long allocations_seen() { return seen; }

void* malloc(std::size_t size) {
    if (fails(__builtin_return_address(0))) {
        errno = ENOMEM;
        return nullptr;
    }
    return __libc_malloc(size);
}

void* calloc(std::size_t count, std::size_t size) {
    if (fails(__builtin_return_address(0))) {
        errno = ENOMEM;
        return nullptr;
    }
    return __libc_calloc(count, size);
}

void* realloc(void* memory, std::size_t size) {
    if (fails(__builtin_return_address(0))) {
        errno = ENOMEM;
        return nullptr;
    }
    return __libc_realloc(memory, size);
}

void* aligned_alloc(std::size_t alignment, std::size_t size) {
    if (fails(__builtin_return_address(0))) {
        errno = ENOMEM;
        return nullptr;
    }
    return __libc_memalign(alignment, size);
}

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*), void* argument) {
    using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
    static const auto create = reinterpret_cast<Create>(dlsym(RTLD_NEXT, "pthread_create"));
    return fails(__builtin_return_address(0)) ? EAGAIN : create(thread, attributes, start, argument);
}
}

void* operator new(std::size_t size) { return new_or_throw(size, 16, __builtin_return_address(0)); }
void* operator new[](std::size_t size) { return new_or_throw(size, 16, __builtin_return_address(0)); }
