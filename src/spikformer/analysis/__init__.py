"""Measuring a model from outside: what it computes, how it fires, whether it keeps its promises."""
