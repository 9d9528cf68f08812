"""The view What if?: choose a log and a target policy, draw the evaluation."""
