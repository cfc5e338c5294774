// Which ops of a program run together, and which buffers share memory.
#include "program.hpp"

namespace spikformer::engine {
namespace {

// How often each buffer is read.
std::vector<std::size_t> count_readers(const std::vector<Op>& ops) {
    std::vector<std::size_t> readers(ops.size() + 1);
    for (const Op& op : ops) {
        for (const std::size_t input : op.inputs) {
            ++readers[input];
        }
    }
    return readers;
}

bool reads(const Op& op, std::size_t buffer) {
    for (const std::size_t input : op.inputs) {
        if (input == buffer) {
            return true;
        }
    }
    return false;
}

// Its currents need no buffer if they are taken at once.
bool makes_currents(const Op& op) {
    return op.kind == OpKind::convolve || op.kind == OpKind::convolve_depthwise || op.kind == OpKind::attend;
}

}  // namespace

// A neuron joins the product or attention right before it if nobody else reads those currents; so do a pool and its
// neuron, and a sum with a stream and the neuron that reads it first. Then products that read the same buffer, one after
// another and each with its neuron alone, join each other.
std::vector<FusedOps> Program::fuse() const {
    const std::vector<std::size_t> readers = count_readers(ops_);
    const auto follows = [&](std::size_t index, OpKind kind) {  // takes what the op before it writes
        return index < ops_.size() && ops_[index].kind == kind && reads(ops_[index], index);
    };
    const auto fuses = [&](std::size_t index, OpKind kind) {  // and nothing else does
        return follows(index + 1, kind) && readers[index + 1] == 1;
    };
    std::vector<FusedOps> fused;
    for (std::size_t index = 0; index < ops_.size();) {
        const Op& op = ops_[index];
        const Kind read = values_[op.inputs[0]].kind;
        std::size_t last = index + 1;
        if (makes_currents(op) && fuses(index, OpKind::fire)) {
            last = index + 2;
            while (op.kind == OpKind::convolve && read != Kind::pixels && last < ops_.size() &&
                   ops_[last].kind == OpKind::convolve && fuses(last, OpKind::fire) && ops_[last].inputs == op.inputs &&
                   ops_[last].kernel == op.kernel && ops_[last].stride == op.stride) {
                last += 2;
            }
        } else if (op.kind == OpKind::convolve && fuses(index, OpKind::pool) && fuses(index + 1, OpKind::fire)) {
            last = index + 3;
        } else if (makes_currents(op) && op.kind != OpKind::attend && read != Kind::pixels &&
                   fuses(index, OpKind::add)) {
            last = index + (follows(index + 2, OpKind::fire) ? 3 : 2);
        }
        fused.push_back({index, last});
        index = last;
    }
    return fused;
}

Tail Program::tail(const FusedOps& fused, std::size_t product) const {
    Tail tail;
    tail.end = product + 1;
    const auto take = [&](OpKind kind) -> const Op* {
        return tail.end < fused.last && ops_[tail.end].kind == kind ? &ops_[tail.end++] : nullptr;
    };
    tail.pool = take(OpKind::pool);
    tail.add = take(OpKind::add);
    tail.neuron = take(OpKind::fire);
    if (tail.add) {
        tail.residual = tail.add->inputs[0] == product + 1 ? tail.add->inputs[1] : tail.add->inputs[0];
    }
    return tail;
}

Program::Slots Program::assign_slots(const std::vector<FusedOps>& fused) const {
    std::vector<std::size_t> last_read(ops_.size() + 1, 0);  // by which of `fused`
    for (std::size_t at = 0; at < fused.size(); ++at) {
        for (std::size_t index = fused[at].first; index < fused[at].last; ++index) {
            for (const std::size_t input : ops_[index].inputs) {
                last_read[input] = at;
            }
        }
    }
    Slots slots;
    slots.of_buffer.assign(ops_.size() + 1, none);
    std::vector<std::size_t> owners;  // the buffer that lies in each slot; `none`: it is free
    for (std::size_t at = 0; at < fused.size(); ++at) {
        for (std::size_t index = fused[at].first; index < fused[at].last; ++index) {
            const Op& op = ops_[index];
            const std::size_t buffer = index + 1;
            const bool passes = makes_currents(op) || op.kind == OpKind::pool;  // on to the op fused after it
            if ((passes && buffer < fused[at].last) || op.kind == OpKind::read_out) {
                continue;  // and logits go to the caller
            }
            const Kind kind = values_[buffer].kind;
            std::size_t slot = none;
            // A residual sum is added in place if nobody reads the stream afterwards.
            if (op.kind == OpKind::add && op.inputs[0] != op.inputs[1]) {
                const bool first_is_new = fused[at].first < index && op.inputs[0] == index;
                const std::size_t stream = op.inputs[first_is_new ? 1 : 0];
                if (last_read[stream] == at && values_[stream].kind == kind &&
                    values_[stream].is_static == values_[buffer].is_static) {
                    slot = slots.of_buffer[stream];
                }
            }
            for (std::size_t candidate = 0; slot == none && candidate < owners.size(); ++candidate) {
                slot = owners[candidate] == none && slots.kinds[candidate] == kind ? candidate : none;
            }
            if (slot == none) {
                slot = owners.size();
                owners.push_back(none);
                slots.kinds.push_back(kind);
            }
            owners[slot] = buffer;
            slots.of_buffer[buffer] = slot;
        }
        for (std::size_t& owner : owners) {
            owner = owner != none && last_read[owner] <= at ? none : owner;
        }
    }
    return slots;
}

}  // namespace spikformer::engine
