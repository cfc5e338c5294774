#include "tensor_file.hpp"

#include <algorithm>
#include <cstring>

#include "json.hpp"
#include "program.hpp"

namespace spikformer::engine {
namespace {

constexpr std::uint64_t longest_header = 1u << 23, most_axes = 16, most_bytes = std::uint64_t{1} << 62;
constexpr char file[] = "The file";

std::uint64_t item_bytes(const std::string& dtype) {
    static const std::map<std::string, std::uint64_t> sizes = {
        {"BOOL", 1}, {"U8", 1},  {"I8", 1},  {"I16", 2}, {"U16", 2}, {"F16", 2}, {"BF16", 2},
        {"I32", 4},  {"U32", 4}, {"F32", 4}, {"F64", 8}, {"I64", 8}, {"U64", 8}};
    const auto found = sizes.find(dtype);
    return found == sizes.end() ? 0 : found->second;
}

Tensor read_tensor(const std::string& name, const Json& described, const unsigned char* data, std::uint64_t size) {
    const std::map<std::string, Json> members = described.members(name);
    expect(members.size() == 3 && members.count("dtype") && members.count("shape") && members.count("data_offsets"),
           name, "it lacks dtype, shape or data_offsets");
    Tensor tensor;
    tensor.dtype = members.at("dtype").text(name);
    const std::uint64_t item = item_bytes(tensor.dtype);
    expect(item > 0, name, "its dtype is unknown");
    const std::vector<Json> axes = members.at("shape").items(name), offsets = members.at("data_offsets").items(name);
    expect(axes.size() <= most_axes && offsets.size() == 2, name, "it has no shape");
    std::uint64_t bytes = item, bound = item;  // an axis of 0 must not hide what the others claim
    for (const Json& axis : axes) {
        const std::uint64_t length = axis.integer(name, 0, most_bytes);
        expect(length <= most_bytes / bound, name, "its shape is larger than any memory");
        bytes *= length;
        bound *= std::max<std::uint64_t>(length, 1);
        expect(length <= SIZE_MAX, name, "its shape is larger than any memory");
        tensor.shape.push_back(static_cast<std::size_t>(length));
    }
    const std::uint64_t begin = offsets[0].integer(name, 0, size), end = offsets[1].integer(name, begin, size);
    expect(end - begin == bytes, name, "it has another number of bytes than its shape");
    tensor.bytes = data + begin;
    tensor.size = static_cast<std::size_t>(bytes);
    return tensor;
}

}  // namespace

std::vector<float> Tensor::floats() const {
    std::vector<float> values(size / sizeof(float));
    if (!values.empty()) {
        std::memcpy(values.data(), bytes, values.size() * sizeof(float));
    }
    return values;
}

TensorFile::TensorFile(const unsigned char* bytes, std::size_t size) {
    std::uint64_t length = 0;
    for (std::size_t i = 0; i < 8 && i < size; ++i) {
        length |= std::uint64_t{bytes[i]} << 8 * i;
    }
    expect(size >= 8 && length >= 2 && length <= size - 8, file, "its header does not fit into it");
    expect(length <= longest_header, file, "its header is too long");
    const unsigned char* data = bytes + 8 + length;
    const std::uint64_t data_size = size - 8 - length;
    const Json header = Json::parse(std::string(reinterpret_cast<const char*>(bytes) + 8, length), "The file's header");
    for (const auto& [name, described] : header.members(file)) {
        if (name != "__metadata__") {
            tensors.emplace(name, read_tensor(name, described, data, data_size));
            continue;
        }
        for (const auto& [key, value] : described.members(file)) {
            metadata.emplace(key, value.text(file));
        }
    }
    std::vector<const Tensor*> in_order;
    for (const auto& entry : tensors) {
        in_order.push_back(&entry.second);
    }
    std::sort(in_order.begin(), in_order.end(), [](const Tensor* a, const Tensor* b) {
        return a->bytes != b->bytes ? a->bytes < b->bytes : a->size < b->size;
    });
    for (const Tensor* tensor : in_order) {
        expect(tensor->bytes == data, file, "its tensors overlap, or have gaps between them");
        data += tensor->size;
    }
    expect(data == bytes + size, file, "its tensors do not fill it");
}

}  // namespace spikformer::engine
