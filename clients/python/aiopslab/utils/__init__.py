"""What AIOpsLab's own code imports beside the orchestrator."""
