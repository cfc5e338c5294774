// JSON from a file that nobody vouches for: the text is checked once as a whole, then read in place.
//
// A value takes 16 bytes and at least two of text, so memory is bounded by the text. Nesting is bounded, too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace spikformer::engine {

// One value of a text, which it keeps alive. Whatever is not as asked for throws std::invalid_argument; `what` names it
// in the message.
class Json {
public:
    static Json parse(std::string text, const std::string& what);

    bool is_null() const { return node().kind == Kind::null; }
    bool is_text() const { return node().kind == Kind::text; }

    std::string text(const std::string& what) const;  // UTF-8
    double number(const std::string& what) const;     // finite
    bool flag(const std::string& what) const;
    // An integer from `least` to `most`; 1.0 is none.
    std::uint64_t integer(const std::string& what, std::uint64_t least, std::uint64_t most) const;
    std::vector<Json> items(const std::string& what) const;
    std::map<std::string, Json> members(const std::string& what) const;  // a name that is there twice throws

private:
    enum class Kind : std::uint8_t { null, no, yes, number, text, list, object };

    // Children follow their parent: the first is the node after it, and `next` is the one after all of them. An object's
    // are names and values in turn. `begin` to `end` is the text, of strings without their quotes.
    struct Node {
        std::uint32_t begin, end, next;
        Kind kind;
    };
    struct Document {
        std::string text;
        std::vector<Node> nodes;
    };
    class Parser;

    Json(std::shared_ptr<const Document> document, std::uint32_t index)
        : document_(std::move(document)), index_(index) {}
    const Node& node() const { return document_->nodes[index_]; }
    std::string raw() const { return document_->text.substr(node().begin, node().end - node().begin); }
    Json at(std::uint32_t index) const { return Json(document_, index); }

    std::shared_ptr<const Document> document_;
    std::uint32_t index_;
};

}  // namespace spikformer::engine
