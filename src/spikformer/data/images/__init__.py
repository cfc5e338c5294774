"""Image files of every set the paper uses, as arrays of bytes; nothing here normalises, augments or batches."""
