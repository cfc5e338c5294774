// No exception leaves the C interface: each becomes a code, and a message that this thread keeps.
#pragma once

#include <exception>
#include <new>
#include <stdexcept>

#include "spikformer.h"

namespace spikformer::c {

// Keeps the message, cut off if it is long, and returns the status.
spikformer_status fail(spikformer_status status, const char* message) noexcept;

// What `call` returns; `wrong` is the status of an std::invalid_argument.
template <typename Call>
spikformer_status guard(spikformer_status wrong, const Call& call) noexcept {
    try {
        return call();
    } catch (const std::invalid_argument& error) {
        return fail(wrong, error.what());
    } catch (const std::bad_alloc&) {
        return fail(SPIKFORMER_NO_MEMORY, "There is not enough memory.");
    } catch (const std::length_error&) {  // of a vector that no memory could hold
        return fail(SPIKFORMER_NO_MEMORY, "There is not enough memory.");
    } catch (const std::exception& error) {
        return fail(SPIKFORMER_FAILED, error.what());
    }
}

}  // namespace spikformer::c
