// What the C++ library of WebAssembly's toolchain lacks: the tag that exceptions are thrown with, and an allocation that
// throws one when there is no memory left.
#include <cstdlib>
#include <new>

asm(".globl __cpp_exception\n"
    ".tagtype __cpp_exception i32\n"
    "__cpp_exception:\n");

void* operator new(std::size_t size) {
    if (void* memory = std::malloc(size > 0 ? size : 1)) {
        return memory;
    }
    throw std::bad_alloc();
}

void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
