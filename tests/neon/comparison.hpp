// What kernels write, and whether two sets of them write the same.
#pragma once

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "core/kernels.hpp"

namespace spikformer::engine {

constexpr std::size_t num_kernels =
    (sizeof(Kernels) - offsetof(Kernels, list_events)) / sizeof(Kernels::list_events);

// Memory for a kernel to write to, and a margin behind it that must stay as it is.
template <typename Element>
struct Output {
    static constexpr unsigned char untouched = 0xA5;
    std::size_t size;
    std::vector<Element> memory;

    explicit Output(std::size_t size) : size(size), memory(size + 64) {
        std::memset(memory.data(), untouched, memory.size() * sizeof(Element));
    }
    bool overrun() const {
        const auto* margin = reinterpret_cast<const unsigned char*>(memory.data() + size);
        const auto* end = reinterpret_cast<const unsigned char*>(memory.data() + memory.size());
        return std::any_of(margin, end, [](unsigned char byte) { return byte != untouched; });
    }
    Element* data() { return memory.data(); }
    const Element* data() const { return memory.data(); }
};

struct Bytes {
    std::string all;
    bool overrun = false;

    template <typename Element>
    Bytes& add(const Element* from, std::size_t count) {
        all.append(reinterpret_cast<const char*>(from), count * sizeof(Element));
        return *this;
    }

    // Of lists, only the first elements have a meaning.
    template <typename Element>
    Bytes& add(const Output<Element>& output, std::size_t used) {
        overrun |= output.overrun();
        return add(output.data(), std::min(used, output.size));
    }

    template <typename Element>
    Bytes& add(const Output<Element>& output) {
        return add(output, output.size);
    }
};

struct Tally {
    std::size_t cases = 0, different = 0;
    std::string first;  // case that is different
};

class Comparison {
public:
    explicit Comparison(const Kernels& compared) : compared_(compared) {}

    const Kernels& scalar() const {
        const Kernels* scalar = choose_kernels("scalar");
        return scalar ? *scalar : compared_;
    }

    // `compute` turns a set of kernels into Bytes; `description` tells the case by names and numbers.
    template <typename Compute, typename... Part>
    void operator()(const char* kernel, const Compute& compute, const Part&... description) {
        const Bytes expected = compute(scalar()), got = compute(compared_);
        Tally& tally = tallies_[kernel];
        ++tally.cases;
        for (const char byte : expected.all) {  // FNV-1a
            fingerprint_ = (fingerprint_ ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
        }
        if ((expected.all != got.all || expected.overrun || got.overrun) && tally.different++ == 0) {
            std::ostringstream text;
            ((text << ' ' << description), ...);
            tally.first = text.str();
        }
    }

    int tell() const {
        std::size_t cases = 0, different = 0;
        for (const auto& [kernel, tally] : tallies_) {
            cases += tally.cases;
            different += tally.different;
            if (tally.different > 0) {
                std::printf("%s: %s is not as scalar, or wrote too far, in %zu of %zu cases, first:%s\n", kernel.c_str(),
                            compared_.name, tally.different, tally.cases, tally.first.c_str());
            }
        }
        if (tallies_.size() != num_kernels) {
            std::printf("Only %zu of %zu kernels were compared.\n", tallies_.size(), num_kernels);
            return 1;
        }
        if (different == 0) {
            std::printf("%s equals scalar to the last bit: %zu kernels, %zu comparisons, fingerprint %016llx\n",
                        compared_.name, num_kernels, cases, static_cast<unsigned long long>(fingerprint_));
        }
        return different == 0 ? 0 : 1;
    }

private:
    const Kernels& compared_;
    std::map<std::string, Tally> tallies_;
    std::uint64_t fingerprint_ = 0xcbf29ce484222325;  // of scalar outputs: `make neon` compares it with another's
};

}  // namespace spikformer::engine
