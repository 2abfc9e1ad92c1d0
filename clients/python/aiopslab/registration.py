"""The name under which Gymnasium knows the environment."""

ID = "AIOpsLab-v0"


def register() -> None:
    """Tell Gymnasium of the environment. Gymnasium calls it when it is imported, so nothing here may
    import more than its registry."""
    from gymnasium.envs import registration

    if ID not in registration.registry:
        registration.register(
            id=ID,
            entry_point="aiopslab.gym:Env",
            vector_entry_point="aiopslab.gym:VectorEnv",
            nondeterministic=True,  # A cluster is never twice the same to the millisecond.
        )
