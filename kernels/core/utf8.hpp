// Characters of a JSON text: as UTF-8, and as the UTF-16 that its escapes are written in.
#pragma once

#include <cstddef>
#include <string>

namespace spikformer::engine {

inline bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Bytes of the UTF-8 character that begins at `text`, 0 if it is none: neither overlong, nor a surrogate.
std::size_t character_length(const unsigned char* text, std::size_t left);

// Four hexadecimal digits; more than 0xFFFF if they are not.
unsigned code_unit(const char* text, std::size_t left);

// The halves of a pair of code units.
inline bool is_high(unsigned unit) { return unit >= 0xD800 && unit < 0xDC00; }
inline bool is_low(unsigned unit) { return unit >= 0xDC00 && unit < 0xE000; }

void append_character(std::string& text, unsigned code);

}  // namespace spikformer::engine
