"""Event-driven inference on a plain CPU, without torch once a model is compiled."""

from spikformer.engine.engine import Engine, EngineState, LayerProfile, compile_engine, load_engine
from spikformer.engine.predict import Prediction

__all__ = ["Engine", "EngineState", "LayerProfile", "Prediction", "compile_engine", "load_engine"]
