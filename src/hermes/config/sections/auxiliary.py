"""Which models do the side jobs: titles, summaries, approval, pictures."""

from typing import Annotated, Any

from msgspec import field

from hermes.config.section import SectionBase, key


class Task(SectionBase, frozen=True):
    """The model of one side job."""

    provider: Annotated[str, key("Who serves it; `auto` is the main one.")] = "auto"
    model: Annotated[str, key("Name of the model; empty is the main one.")] = ""
    base_url: Annotated[str, key("Address, when it is another one.")] = ""
    api_key: Annotated[str, key("Key for that address.")] = ""
    timeout: Annotated[float, key("Seconds the job may take.", gt=0)] = 120
    reasoning_effort: Annotated[str, key("How long it thinks.")] = ""
    extra_body: Annotated[dict[str, Any], key("Fields added to the request.")] = field(default_factory=dict)


class VisionTask(Task, frozen=True):
    """The model that looks at pictures, and how they come to it."""

    download_timeout: Annotated[float, key("Seconds the download of a picture may take.", gt=0)] = 30


class TitleTask(Task, frozen=True):
    """The model of titles, and what they should be."""

    enabled: Annotated[bool, key("Make titles.")] = True
    language: Annotated[str, key("Their language; empty is that of the conversation.")] = ""


class ReviewTask(Task, frozen=True):
    """The model of the background review, and whether there is one."""

    enabled: Annotated[bool, key("Review conversations in the background for what is worth keeping.")] = True


class Section(SectionBase, frozen=True):
    """Which models do the side jobs: titles, summaries, approval, pictures."""

    transient_retries: Annotated[int, key("Times a failed job is tried again.", ge=0)] = 2
    compression: Annotated[Task, key("Summing up long conversations.")] = Task()
    title_generation: Annotated[TitleTask, key("Titles of sessions.")] = TitleTask(timeout=30)
    approval: Annotated[Task, key("Judging commands in `approvals.mode: smart`.")] = Task(timeout=30)
    vision: Annotated[VisionTask, key("Looking at pictures, for `vision_analyze`.")] = VisionTask()
    background_review: Annotated[ReviewTask, key("Looking back for memory and skills.")] = ReviewTask()
    web_extract: Annotated[Task, key("Boiling pages down.", pending=True)] = Task(timeout=360)
    session_search: Annotated[Task, key("Summing up sessions that were found.", pending=True)] = Task(timeout=30)
    skills_hub: Annotated[Task, key("Checking skills before they are installed.", pending=True)] = Task(timeout=30)
    mcp: Annotated[Task, key("Model calls that MCP servers ask for.")] = Task(timeout=30)
