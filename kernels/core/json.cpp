#include "json.hpp"

#include <clocale>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "program.hpp"
#include "utf8.hpp"

namespace spikformer::engine {
namespace {

constexpr std::size_t deepest = 64;          // a card's settings are 16 levels deep at most
constexpr std::size_t longest = 1u << 24;    // bytes; a header has fewer
constexpr std::size_t longest_number = 400;  // digits; repr() of a float has 24

constexpr char escapes[] = "\"\\/bfnrt", escaped[] = "\"\\/\b\f\n\r\t";

}  // namespace

// Every value becomes a node; strings are checked, and decoded when they are asked for.
class Json::Parser {
public:
    Parser(Document& document, const std::string& what) : text_(document.text), nodes_(document.nodes), what_(what) {}

    void parse() {
        expect(text_.size() <= longest, "is too long");
        value(0);
        skip_space();
        expect(at_ == text_.size(), "is not JSON");
    }

private:
    void expect(bool holds, const char* problem) const { engine::expect(holds, what_, std::string("it ") + problem); }
    char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
    std::uint32_t here() const { return static_cast<std::uint32_t>(at_); }

    bool take(char c) {
        const bool found = at_ < text_.size() && text_[at_] == c;
        at_ += found;
        return found;
    }

    void skip_space() {
        while (at_ < text_.size() && std::strchr(" \t\n\r", text_[at_]) && text_[at_] != '\0') {
            ++at_;
        }
    }

    void value(std::size_t depth) {
        expect(depth < deepest, "is nested too deeply");
        skip_space();
        const std::size_t index = nodes_.size();
        nodes_.push_back({here(), 0, 0, Kind::null});
        switch (peek()) {
            case '{': members(index, depth); break;
            case '[': items(index, depth); break;
            case '"': string(index); break;
            case 't': word("true", index, Kind::yes); break;
            case 'f': word("false", index, Kind::no); break;
            case 'n': word("null", index, Kind::null); break;
            default: number(index); break;
        }
        nodes_[index].next = static_cast<std::uint32_t>(nodes_.size());
    }

    void members(std::size_t index, std::size_t depth) {
        nodes_[index].kind = Kind::object;
        ++at_;
        skip_space();
        if (take('}')) {
            return;
        }
        do {
            skip_space();
            const std::size_t name = nodes_.size();
            nodes_.push_back({here(), 0, static_cast<std::uint32_t>(name + 1), Kind::text});
            expect(peek() == '"', "is not JSON");
            string(name);
            skip_space();
            expect(take(':'), "is not JSON");
            value(depth + 1);
            skip_space();
        } while (take(','));
        expect(take('}'), "is not JSON");
    }

    void items(std::size_t index, std::size_t depth) {
        nodes_[index].kind = Kind::list;
        ++at_;
        skip_space();
        if (take(']')) {
            return;
        }
        do {
            value(depth + 1);
            skip_space();
        } while (take(','));
        expect(take(']'), "is not JSON");
    }

    void word(const char* word, std::size_t index, Kind kind) {
        const std::size_t length = std::strlen(word);
        expect(text_.compare(at_, length, word) == 0, "is not JSON");
        nodes_[index].kind = kind;
        at_ += length;
    }

    void digits() {
        expect(is_digit(peek()), "is not JSON");
        while (is_digit(peek())) {
            ++at_;
        }
    }

    void number(std::size_t index) {
        nodes_[index].kind = Kind::number;
        take('-');
        if (!take('0')) {  // after which no digit follows
            digits();
        }
        if (take('.')) {
            digits();
        }
        if (take('e') || take('E')) {
            if (!take('-')) {
                take('+');
            }
            digits();
        }
        nodes_[index].end = here();
        expect(at_ - nodes_[index].begin <= longest_number, "has a number that is too long");
    }

    void string(std::size_t index) {
        nodes_[index].kind = Kind::text;
        nodes_[index].begin = static_cast<std::uint32_t>(++at_);
        while (peek() != '"') {
            const auto* rest = reinterpret_cast<const unsigned char*>(text_.data()) + at_;
            expect(at_ < text_.size() && *rest >= 0x20, "is not JSON");
            if (*rest == '\\') {
                escape();
            } else {
                const std::size_t length = character_length(rest, text_.size() - at_);
                expect(length > 0, "is not UTF-8");
                at_ += length;
            }
        }
        nodes_[index].end = static_cast<std::uint32_t>(at_++);
    }

    void escape() {
        ++at_;
        if (!take('u')) {
            expect(peek() != '\0' && std::strchr(escapes, peek()), "is not JSON");
            ++at_;
            return;
        }
        const unsigned unit = code_unit(text_.data() + at_, text_.size() - at_);
        expect(unit <= 0xFFFF && !is_low(unit), "has a character that does not exist");
        at_ += 4;
        if (is_high(unit)) {
            expect(take('\\') && take('u') && is_low(code_unit(text_.data() + at_, text_.size() - at_)),
                   "has a character that does not exist");
            at_ += 4;
        }
    }

    const std::string& text_;
    std::vector<Node>& nodes_;
    const std::string& what_;
    std::size_t at_ = 0;
};

Json Json::parse(std::string text, const std::string& what) {
    const auto document = std::make_shared<Document>();
    document->text = std::move(text);
    Parser(*document, what).parse();
    return Json(document, 0);
}

std::string Json::text(const std::string& what) const {
    expect(is_text(), what, "it is not text");
    const std::string raw = this->raw();
    std::string decoded;
    decoded.reserve(raw.size());
    for (std::size_t i = 0; i < raw.size(); ++i) {
        if (raw[i] != '\\') {
            decoded += raw[i];
        } else if (raw[++i] != 'u') {
            decoded += escaped[std::strchr(escapes, raw[i]) - escapes];
        } else {
            unsigned code = code_unit(&raw[i + 1], 4);
            i += 4;
            if (is_high(code)) {
                code = 0x10000 + ((code - 0xD800) << 10) + (code_unit(&raw[i + 3], 4) - 0xDC00);
                i += 6;
            }
            append_character(decoded, code);
        }
    }
    return decoded;
}

// strtod reads the point of the locale, whichever the host has set.
double Json::number(const std::string& what) const {
    expect(node().kind == Kind::number, what, "it is not a number");
    std::string digits = raw();
    if (const std::size_t point = digits.find('.'); point != std::string::npos) {
        digits.replace(point, 1, std::localeconv()->decimal_point);
    }
    const double value = std::strtod(digits.c_str(), nullptr);
    expect(std::isfinite(value), what, "it is too large");
    return value;
}

bool Json::flag(const std::string& what) const {
    expect(node().kind == Kind::yes || node().kind == Kind::no, what, "it is neither true nor false");
    return node().kind == Kind::yes;
}

std::uint64_t Json::integer(const std::string& what, std::uint64_t least, std::uint64_t most) const {
    const std::string digits = node().kind == Kind::number ? raw() : "";
    bool fits = !digits.empty() && digits.size() <= 19;  // below 2^64
    std::uint64_t value = 0;
    for (const char digit : digits) {
        fits = fits && is_digit(digit);
        value = fits ? value * 10 + static_cast<std::uint64_t>(digit - '0') : 0;
    }
    expect(fits && value >= least && value <= most, what,
           "it is not an integer from " + std::to_string(least) + " to " + std::to_string(most));
    return value;
}

std::vector<Json> Json::items(const std::string& what) const {
    expect(node().kind == Kind::list, what, "it is not a list");
    std::vector<Json> items;
    for (std::uint32_t child = index_ + 1; child < node().next; child = document_->nodes[child].next) {
        items.push_back(at(child));
    }
    return items;
}

std::map<std::string, Json> Json::members(const std::string& what) const {
    expect(node().kind == Kind::object, what, "it is not an object");
    std::map<std::string, Json> members;
    for (std::uint32_t child = index_ + 1; child < node().next; child = document_->nodes[child].next) {
        const std::string name = at(child).text(what);
        child = document_->nodes[child].next;
        expect(members.emplace(name, at(child)).second, what, "it has a name twice");
    }
    return members;
}

}  // namespace spikformer::engine
