#include "utf8.hpp"

namespace spikformer::engine {

std::size_t character_length(const unsigned char* text, std::size_t left) {
    const auto follows = [&](std::size_t i, unsigned least = 0x80, unsigned most = 0xBF) {
        return i < left && text[i] >= least && text[i] <= most;
    };
    const unsigned lead = text[0];
    if (lead < 0x80) {
        return 1;
    }
    if (lead >= 0xC2 && lead <= 0xDF) {
        return follows(1) ? 2 : 0;
    }
    if (lead >= 0xE0 && lead <= 0xEF) {
        return follows(1, lead == 0xE0 ? 0xA0 : 0x80, lead == 0xED ? 0x9F : 0xBF) && follows(2) ? 3 : 0;
    }
    if (lead >= 0xF0 && lead <= 0xF4) {
        const bool second = follows(1, lead == 0xF0 ? 0x90 : 0x80, lead == 0xF4 ? 0x8F : 0xBF);
        return second && follows(2) && follows(3) ? 4 : 0;
    }
    return 0;
}

unsigned code_unit(const char* text, std::size_t left) {
    unsigned code = 0;
    for (std::size_t i = 0; i < 4; ++i) {
        const char c = i < left ? text[i] : ' ';
        const char lower = static_cast<char>(c | 0x20);
        if (!is_digit(c) && (lower < 'a' || lower > 'f')) {
            return 0x10000;
        }
        code = code * 16 + static_cast<unsigned>(is_digit(c) ? c - '0' : lower - 'a' + 10);
    }
    return code;
}

void append_character(std::string& text, unsigned code) {
    const auto tail = [&](unsigned shift) { text += static_cast<char>(0x80 | (code >> shift & 0x3F)); };
    if (code < 0x80) {
        text += static_cast<char>(code);
    } else if (code < 0x800) {
        text += static_cast<char>(0xC0 | code >> 6);
        tail(0);
    } else if (code < 0x10000) {
        text += static_cast<char>(0xE0 | code >> 12);
        tail(6);
        tail(0);
    } else {
        text += static_cast<char>(0xF0 | code >> 18);
        tail(12);
        tail(6);
        tail(0);
    }
}

}  // namespace spikformer::engine
