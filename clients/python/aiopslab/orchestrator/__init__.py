"""AIOpsLab's orchestrator.

    orchestrator = Orchestrator()
    orchestrator.register_agent(agent, name="mine")
    problem_desc, instructions, actions = orchestrator.init_problem(problem_id)
    agent.init_context(problem_desc, instructions, actions)
    asyncio.run(orchestrator.start_problem(max_steps=30))

An agent has one method, ``get_action(observation)``, async or not: it returns text with one call in
it.
"""

from .orchestrator import Orchestrator

__all__ = ["Orchestrator"]
