"""Event-driven inference on a plain CPU, without torch once a model is compiled."""

from spikformer.engine.engine import Engine, compile_engine, load_engine
from spikformer.engine.inputs import EngineState
from spikformer.engine.predict import Prediction
from spikformer.engine.probes import OpProfile

__all__ = ["Engine", "EngineState", "OpProfile", "Prediction", "compile_engine", "load_engine"]
