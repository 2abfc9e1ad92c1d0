"""An AIOpsLab agent, run as AIOpsLab runs it: python3 examples/agent.py PROBLEM"""

import asyncio
import sys

from aiopslab.orchestrator import Orchestrator


class Agent:
    def init_context(self, problem_desc, instructions, apis):
        self.looked = False

    async def get_action(self, observation):
        if not self.looked:
            self.looked = True
            return '```\nexec_shell("kubectl get pods --no-headers -A")\n```'
        return '```\nsubmit("%s")\n```' % ("Yes" if "0/1" in observation else "No")


agent = Agent()
orchestrator = Orchestrator()
orchestrator.register_agent(agent, name="glance")
agent.init_context(*orchestrator.init_problem(sys.argv[1]))
output = asyncio.run(orchestrator.start_problem(max_steps=10))
print(output["outcome"]["class"], output["results"])
