"""Off-policy evaluation: what another policy would have earned on a log of decisions.

Example
-------
>>> from bandits.offpolicy import evaluate
>>> found = evaluate("open_bandit/random/men", "random", estimators=["ips", "snips"])
>>> round(found.estimates["ips"].value, 4), found.alarms
(0.0046, ())
"""

from .dsjson import read_dsjson, write_dsjson
from .estimators import REGISTRY, Rounds
from .evaluation import Evaluation, Truth, evaluate
from .intervals import Interval
from .keeping import keep_for_replay
from .log import DecisionLog
from .named_targets import Greedy, read_target
from .parquet import write_parquet
from .reading import read_log
from .recording import record
from .replayed_agent import ReplayedAgent, replay_learner
from .simulated import learned_agent, true_value
from .support import Alarm, Support
from .targets import Always, Column, Matrix, Random, Target
from .user_table import from_frame
from .visits import OF_VISITS, Visits

__all__ = [
    "OF_VISITS",
    "REGISTRY",
    "Alarm",
    "Always",
    "Column",
    "DecisionLog",
    "Evaluation",
    "Greedy",
    "Interval",
    "Matrix",
    "Random",
    "ReplayedAgent",
    "Rounds",
    "Support",
    "Target",
    "Truth",
    "Visits",
    "evaluate",
    "from_frame",
    "keep_for_replay",
    "learned_agent",
    "read_dsjson",
    "read_log",
    "read_target",
    "record",
    "replay_learner",
    "true_value",
    "write_dsjson",
    "write_parquet",
]
