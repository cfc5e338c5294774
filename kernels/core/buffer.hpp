// Memory that starts at a cache line and only grows: planned once, used by every call.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdlib>
#include <limits>
#include <memory>
#include <new>

namespace spikformer::engine {

template <typename Element>
class Buffer {
public:
    // At least `size` elements, not initialised; what was there is lost if it has to grow.
    Element* reserve(std::size_t size) {
        if (size > size_) {
            constexpr std::size_t line = 64;
            if (size > std::numeric_limits<std::size_t>::max() / 2 / sizeof(Element)) {
                throw std::bad_alloc();
            }
            memory_.reset();
            size_ = 0;
            memory_.reset(static_cast<Element*>(std::aligned_alloc(line, (size * sizeof(Element) + line - 1) / line * line)));
            if (!memory_) {
                throw std::bad_alloc();
            }
            size_ = size;
        }
        return memory_.get();
    }

    // Where `size` elements begin: they are there, which builds with assertions check.
    Element* at(std::size_t begin, [[maybe_unused]] std::size_t size) {
        assert(begin <= size_ && size <= size_ - begin);
        return memory_.get() + begin;
    }
    const Element* at(std::size_t begin, std::size_t size) const { return const_cast<Buffer*>(this)->at(begin, size); }

    Element* data() { return memory_.get(); }
    const Element* data() const { return memory_.get(); }
    std::size_t bytes() const { return size_ * sizeof(Element); }

private:
    struct Free {
        void operator()(Element* memory) const { std::free(memory); }
    };

    std::unique_ptr<Element, Free> memory_;
    std::size_t size_ = 0;
};

}  // namespace spikformer::engine
