"""A training loop: python3 examples/train.py EPISODES PROBLEM..."""

import sys

from aiopslab.gym import Env


def policy(observation):
    """Here a model would be asked, and learn."""
    return {"name": "submit", "arguments": {"has_anomaly": "Yes"}}


with Env(sys.argv[2:], seed=7, max_steps=10, reward={"step": -0.01}) as env:
    for episode in range(int(sys.argv[1])):
        observation, info = env.reset()
        total, over = 0.0, False
        while not over:
            observation, reward, terminated, truncated, info = env.step(policy(observation))
            total += reward
            over = terminated or truncated
        if info["valid"]:  # Else it says nothing of the policy.
            print("episode %d: %s, return %.2f" % (episode + 1, info["class"], total))
