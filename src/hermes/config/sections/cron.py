"""Jobs that run by themselves, at their times."""

from typing import Annotated

from msgspec import field

from hermes.config.section import Positive, SectionBase, key


class Section(SectionBase, frozen=True):
    """Jobs that run by themselves, at their times (`hermes cron`)."""

    wrap_response: Annotated[
        bool, key("Deliver an answer with the job's name and how to stop it; false: the answer alone.")
    ] = True
    max_parallel_jobs: Annotated[Positive | None, key("Runs at once; further ones wait. null: 64.")] = None
    output_retention: Annotated[int, key("Output files that are kept of each job.", ge=1)] = 50
    history_days: Annotated[int, key("Days after which due moments are folded into counts.", ge=32)] = 90
    pause_after_failures: Annotated[
        int, key("Failures in a row after which a job pauses itself; 0 is never.", ge=0)
    ] = 5
    script_timeout_seconds: Annotated[
        float, key("Seconds a job's script may take.", env="HERMES_CRON_SCRIPT_TIMEOUT", gt=0)
    ] = 3600
    inactivity_seconds: Annotated[
        float,
        key(
            "Seconds without a sign of life after which a run is stopped; 0 is never.", env="HERMES_CRON_TIMEOUT", ge=0
        ),
    ] = 600
    commands: Annotated[
        dict[str, str], key("Shell commands that deliveries may go to (`command:NAME`); the words are on their stdin.")
    ] = field(default_factory=dict)
