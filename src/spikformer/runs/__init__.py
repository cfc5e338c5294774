"""The application: everything that takes several rooms, as plain functions.

    from spikformer.runs.train import train            also sf.train
    from spikformer.runs.evaluate import evaluate      also sf.evaluate
    from spikformer.runs.predict import predict        also sf.predict

`cli` parses arguments and prints around them.
"""
