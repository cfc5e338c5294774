#include "op_reader.hpp"

#include <algorithm>
#include <cmath>

namespace spikformer::engine {
namespace {

// One op, whose fields and arrays are checked as they are taken; none may be left when it is added.
class OpReader {
public:
    OpReader(Program& program, const Json& described, std::map<std::string, Tensor>& tensors)
        : program_(program), fields_(described.members("The program")), tensors_(tensors) {
        name_ = take("name").text("The program");
        for (const Json& input : take("inputs").items(name_)) {
            inputs_.push_back(static_cast<std::size_t>(input.integer(name_, 0, most_count)));
        }
    }

    void add() {
        using Add = void (OpReader::*)();
        static const std::map<std::string, Add> ops = {
            {word_of(OpKind::convolve), &OpReader::convolve},
            {word_of(OpKind::convolve_depthwise), &OpReader::convolve_depthwise},
            {word_of(OpKind::fire), &OpReader::fire},
            {word_of(OpKind::pool), &OpReader::pool},
            {word_of(OpKind::pool_tokens), &OpReader::pool_tokens},
            {word_of(OpKind::dilate), &OpReader::without<&Program::dilate>},
            {word_of(OpKind::dilate_heads), &OpReader::with_heads<&Program::dilate_heads>},
            {word_of(OpKind::add), &OpReader::add_streams},
            {word_of(OpKind::conjunction), &OpReader::conjunction},
            {word_of(OpKind::sum_tokens), &OpReader::without<&Program::sum_tokens>},
            {word_of(OpKind::sum_heads), &OpReader::with_heads<&Program::sum_heads>},
            {word_of(OpKind::mean), &OpReader::without<&Program::mean>},
            {word_of(OpKind::attend), &OpReader::attend},
            {word_of(OpKind::read_out), &OpReader::read_out},
        };
        const auto found = ops.find(take("op").text(name_));
        expect(found != ops.end(), name_, "its op is unknown");
        (this->*found->second)();
    }

private:
    struct Array {
        std::vector<std::size_t> shape;
        std::vector<float> values;
    };

    bool has(const std::string& field) const { return fields_.count(field) > 0; }

    Json take(const std::string& field) {
        const auto found = fields_.find(field);
        expect(found != fields_.end(), name_, "it lacks " + field);
        const Json value = found->second;
        fields_.erase(found);
        return value;
    }

    std::size_t count(const std::string& field) {
        return static_cast<std::size_t>(take(field).integer(name_, 1, most_count));
    }
    std::size_t count(const std::string& field, std::size_t otherwise) { return has(field) ? count(field) : otherwise; }

    float constant(const Json& value) const {
        const double number = value.number(name_);
        expect(std::fabs(number) <= max_constant, name_, "a constant is too large");
        return static_cast<float>(number);
    }

    Array array(const std::string& field, std::size_t dimensions) {
        const auto found = tensors_.find(name_ + "." + field);
        expect(found != tensors_.end(), name_, "the file lacks its " + field);
        const Tensor& tensor = found->second;
        expect(tensor.dtype == "F32" && tensor.shape.size() == dimensions && tensor.size > 0, name_,
               "its " + field + " must be F32, of " + std::to_string(dimensions) + " dimensions");
        Array array{tensor.shape, tensor.floats()};
        tensors_.erase(found);
        const double inputs = dimensions > 1 ? static_cast<double>(array.values.size() / array.shape[0]) : 1;
        const bool fits = std::all_of(array.values.begin(), array.values.end(), [&](float value) {
            return std::fabs(static_cast<double>(value)) * inputs <= max_sum;  // false for NaN
        });
        expect(fits, name_, "its " + field + " hold NaN or infinity, or are too large");
        return array;
    }

    // The buffers it reads; the last thing to be asked for.
    const std::vector<std::size_t>& inputs(std::size_t number = 1) const {
        expect(inputs_.size() == number, name_, "it reads another number of buffers");
        expect(fields_.empty(), name_, "it has a field that its op does not know");
        return inputs_;
    }

    void convolve() {
        const Array weights = array("weights", 4), bias = array("bias", 1);
        expect(weights.shape[1] == weights.shape[2] && weights.shape[0] == bias.shape[0], name_,
               "weights must be [outputs, k, k, channels] with a bias for each output");
        const std::size_t stride = count("stride", 1);
        program_.convolve(name_, inputs()[0], weights.values.data(), bias.values.data(), weights.shape[0],
                          weights.shape[1], weights.shape[3], stride);
    }

    void convolve_depthwise() {
        const Array weights = array("weights", 3), bias = array("bias", 1);
        expect(weights.shape[0] == weights.shape[1] && weights.shape[2] == bias.shape[0], name_,
               "weights must be [k, k, channels] with a bias for each channel");
        program_.convolve_depthwise(name_, inputs()[0], weights.values.data(), bias.values.data(), weights.shape[0],
                                    weights.shape[2]);
    }

    void read_out() {
        const Array weights = array("weights", 2), bias = array("bias", 1);
        expect(weights.shape[0] == bias.shape[0], name_,
               "weights must be [classes, channels] with a bias for each class");
        program_.read_out(name_, inputs()[0], weights.values.data(), bias.values.data(), weights.shape[0],
                          weights.shape[1]);
    }

    void fire() {
        const std::vector<Json> constants = take("neuron").items(name_);
        expect(constants.size() == 4, name_, "a neuron has four constants");
        program_.fire(name_, inputs()[0],
                      {constant(constants[0]), constant(constants[1]), constant(constants[2]), constant(constants[3])});
    }

    void pool() {
        const std::size_t kernel = count("kernel", most_pooled);
        program_.pool(name_, inputs()[0], kernel);
    }

    void pool_tokens() {
        const std::size_t kernel = count("kernel");
        program_.pool_tokens(name_, inputs()[0], kernel);
    }

    template <std::size_t (Program::*op)(std::string, std::size_t)>
    void without() {
        (program_.*op)(name_, inputs()[0]);
    }

    template <std::size_t (Program::*op)(std::string, std::size_t, std::size_t)>
    void with_heads() {
        const std::size_t num_heads = count("num_heads");
        (program_.*op)(name_, inputs()[0], num_heads);
    }

    void add_streams() { program_.add(name_, inputs(2)[0], inputs(2)[1]); }

    void conjunction() {
        const std::size_t num_heads = count("num_heads", 1);
        const bool inverted = has("inverted") && take("inverted").flag(name_);
        program_.conjunction(name_, inputs(2)[0], inputs(2)[1], num_heads, inverted);
    }

    void attend() {
        const std::size_t num_heads = count("num_heads");
        const float scale = constant(take("scale"));
        program_.attend(name_, inputs(3)[0], inputs(3)[1], inputs(3)[2], num_heads, scale);
    }

    Program& program_;
    std::map<std::string, Json> fields_;
    std::map<std::string, Tensor>& tensors_;
    std::string name_ = "The program";
    std::vector<std::size_t> inputs_;
};

}  // namespace

void add_described_op(Program& program, const Json& described, std::map<std::string, Tensor>& tensors) {
    OpReader(program, described, tensors).add();
}

}  // namespace spikformer::engine
