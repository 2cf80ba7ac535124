"""Hundreds of foreign tools: a small first request, found by search, called through the bridge, prefix untouched."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from hermes.tools.registration.definitions import ViewRequest, session_view
from hermes.tools.registration.manifest import ensure_builtins
from hermes.tools.registration.tool_search import BRIDGE, Index
from hermes.tools.registry import Registered, ToolEntry, registry
from hermes.tools.view import SessionView
from hermes.types import ToolDefinition, text_of
from tests.runtime.rooms import room, tool

# What public servers of this kind offer, in their usual words; each with two things a person would ask for.
KNOWN: dict[str, tuple[str, str, str]] = {
    "github_create_issue": (
        "Create a new issue in a GitHub repository",
        "open a bug report",
        "file an issue on the repo",
    ),
    "github_list_pull_requests": (
        "List pull requests of a repository",
        "show open pull requests",
        "which PRs: pull requests",
    ),
    "github_merge_pull_request": ("Merge a pull request", "merge this pull request", "merge the PR pull"),
    "github_search_code": (
        "Search for code across GitHub repositories",
        "search code on github",
        "find code in repositories",
    ),
    "slack_post_message": ("Post a message to a Slack channel", "post in the slack channel", "send a slack message"),
    "slack_list_channels": ("List channels in the workspace", "which slack channels exist", "list the channels"),
    "slack_add_reaction": ("Add an emoji reaction to a message", "react with an emoji", "add a reaction"),
    "gmail_send_email": ("Send an email from the user's mailbox", "send an email to Bob", "write a mail: email"),
    "gmail_search_threads": ("Search mail threads by query", "search my mail", "find an email thread"),
    "calendar_create_event": (
        "Create an event in the calendar",
        "schedule a meeting in my calendar",
        "create a calendar event",
    ),
    "calendar_list_events": (
        "List upcoming calendar events",
        "what events are in the calendar",
        "list upcoming events",
    ),
    "calendar_find_free_slots": ("Find free time slots across attendees", "when is everyone free", "find a free slot"),
    "drive_upload_file": ("Upload a file to cloud storage", "upload this file", "put a file to storage: upload"),
    "drive_share_file": ("Share a file with a person by email", "share the file with Ann", "share a document file"),
    "notion_create_page": ("Create a page in a Notion database", "make a notion page", "add a page in notion"),
    "notion_query_database": (
        "Query a Notion database with filters",
        "query the notion database",
        "filter the database in notion",
    ),
    "jira_create_ticket": ("Create a ticket in a Jira project", "create a jira ticket", "new ticket in the project"),
    "jira_transition_ticket": (
        "Move a ticket to another status",
        "move the ticket to done",
        "change the status of a ticket",
    ),
    "linear_assign_issue": (
        "Assign an issue to a team member in Linear",
        "assign the linear issue",
        "assign it to a team member",
    ),
    "postgres_run_query": (
        "Run a read-only SQL query against PostgreSQL",
        "run this sql query",
        "query postgres with sql",
    ),
    "postgres_describe_table": (
        "Describe columns and indexes of a table",
        "columns of the table",
        "describe the users table",
    ),
    "redis_get_key": ("Get the value of a Redis key", "value of the redis key", "read a key from redis"),
    "s3_list_objects": ("List objects in an S3 bucket", "objects in the bucket", "list the s3 bucket"),
    "k8s_get_pods": ("Get pods of a Kubernetes namespace", "list the kubernetes pods", "pods in the namespace"),
    "k8s_scale_deployment": ("Scale a deployment to a number of replicas", "scale the deployment", "more replicas"),
    "k8s_read_logs": ("Read logs of a Kubernetes pod", "logs of the pod", "read kubernetes logs"),
    "sentry_list_errors": ("List recent errors of a Sentry project", "recent sentry errors", "which errors in sentry"),
    "datadog_query_metrics": ("Query time series metrics", "query the cpu metrics", "metrics over time"),
    "pagerduty_page_oncall": ("Page the engineer on call", "page whoever is on call", "wake the oncall engineer"),
    "stripe_refund_payment": (
        "Refund a payment to the customer",
        "refund the customer",
        "give the payment back: refund",
    ),
    "stripe_create_invoice": ("Create an invoice for a customer", "invoice the customer", "create an invoice"),
    "salesforce_find_contact": ("Find a contact by name or email", "find the contact Smith", "look up a contact"),
    "maps_get_directions": (
        "Get directions between two places",
        "directions to the station",
        "how to get there: directions",
    ),
    "maps_geocode_address": ("Turn an address into coordinates", "coordinates of an address", "geocode this address"),
    "weather_get_forecast": (
        "Get the weather forecast of a place",
        "weather forecast for Oslo",
        "what will the weather be",
    ),
    "flights_search_offers": ("Search flight offers between airports", "search flights to Rome", "flight offers"),
    "hotel_book_room": ("Book a hotel room", "book a hotel", "reserve a hotel room"),
    "figma_export_frame": (
        "Export a frame of a Figma file as an image",
        "export the figma frame",
        "image of a figma frame",
    ),
    "youtube_get_transcript": (
        "Get the transcript of a YouTube video",
        "transcript of the video",
        "youtube transcript",
    ),
    "translate_text": ("Translate text into another language", "translate this text", "into another language"),
}


def definition(name: str, description: str) -> ToolDefinition:
    parameters = {"type": "object", "properties": {"id": {"type": "string", "description": "Which one it is about."}}}
    return ToolDefinition(name, description, parameters)


def corpus() -> list[ToolDefinition]:
    """Five hundred tools: the known ones among fillers of the same kind of words."""
    verbs = [
        "archive",
        "clone",
        "count",
        "delete",
        "export",
        "import",
        "inspect",
        "lock",
        "pin",
        "rename",
        "tag",
        "watch",
    ]
    things = [
        f"{kind}_{part}"
        for kind in ("asset", "batch", "board", "camera", "cart", "course", "device", "draft")
        for part in ("alias", "comment", "folder", "label", "owner")
    ]
    fillers = [
        definition(f"{verb}_{thing}", f"{verb.capitalize()} the {thing.replace('_', ' ')} of an account")
        for verb in verbs
        for thing in things
    ]
    known = [definition(name, words[0]) for name, words in KNOWN.items()]
    return [*fillers[: 500 - len(known)], *known]


def test_the_right_tool_is_among_the_first_five_for_nineteen_of_twenty_queries() -> None:
    index = Index(corpus())
    asked = [(query, name) for name, words in KNOWN.items() for query in words[1:]]
    missed = [(query, name) for query, name in asked if name not in [one.name for one in index.search(query)]]
    assert len(asked) == 80
    assert len(missed) <= len(asked) * 0.05, missed
    assert index.search("zzzz qqqq") == []


@pytest.fixture
def many() -> Iterator[None]:
    ensure_builtins()

    def handler(args: dict[str, Any], **_: object) -> str:
        return json.dumps({"got": args})

    tools = corpus()
    for one in tools:
        schema = {"name": one.name, "description": one.description, "parameters": one.parameters}
        registry.add(Registered(ToolEntry(one.name, "mcp-many", schema, handler), origin="mcp", source="many"))
    yield
    for one in tools:
        registry.deregister(one.name)


def encoded(view: SessionView) -> str:
    return msgspec.json.encode(view.definitions()).decode()


def test_five_hundred_tools_add_less_than_a_thousand_tokens(many: None, hermes_home: Path) -> None:
    without = session_view(ViewRequest(home=hermes_home, settings={}, enabled=["file"]))
    view = session_view(ViewRequest(home=hermes_home, settings={}, enabled=["file", "mcp-many"]))
    assert {one.name for one in view.definitions()} == {one.name for one in without.definitions()} | BRIDGE
    assert (len(encoded(view)) - len(encoded(without))) / 4 < 1000
    assert len(view.names()) >= 500
    again = session_view(ViewRequest(home=hermes_home, settings={}, enabled=["file", "mcp-many"]), view.to_json())
    assert (again.to_json(), encoded(again)) == (view.to_json(), encoded(view))
    off: dict[str, Any] = {"tools": {"tool_search": {"enabled": "off"}}}
    listed = session_view(ViewRequest(home=hermes_home, settings=off, enabled=["mcp-many"]))
    assert len(listed.definitions()) == 500


async def test_a_tool_is_found_described_and_called_and_hooks_see_its_real_name(
    many: None, hermes_home: Path, tmp_path: Path
) -> None:
    view = session_view(ViewRequest(home=hermes_home, settings={}, enabled=["mcp-many"]))
    seen: list[str] = []

    def policy(tool_name: str) -> None:
        seen.append(tool_name)

    async with room(tmp_path, tool("unused", print)) as base:
        it = base.over(view)
        it.hooks.add("pre_tool_call", policy, owner="test", kind="policy")
        found = json.loads(text_of((await it.one("tool_search", '{"query": "refund a customer"}')).content))
        assert "stripe_refund_payment" in [one["name"] for one in found["tools"]]
        shown = json.loads(text_of((await it.one("tool_describe", '{"name": "stripe_refund_payment"}')).content))
        assert "id" in shown["parameters"]["properties"]
        called = await it.one("tool_call", '{"name": "stripe_refund_payment", "arguments": {"id": "7"}}')
        assert '{"got": {"id": "7"}}' in text_of(called.content)
        assert called.name == "tool_call"
        direct = await it.one("stripe_refund_payment", '{"id": "8"}')
        assert direct.status == "ok"
        wrong = '{"name": "stripe_refund_payment", "arguments": {"id": 7}}'
        for bad in ('{"name": "nope"}', '{"name": "tool_call"}', '{"name": 3}', wrong):
            assert (await it.one("tool_call", bad)).status == "failed"
    assert seen == ["tool_search", "tool_describe", "stripe_refund_payment", "stripe_refund_payment"]
    assert [one.name for one in it.ctx.tools.definitions()] == sorted(BRIDGE)


def test_few_foreign_tools_are_listed_as_they_are(hermes_home: Path) -> None:
    schema = {"name": "lonely", "description": "d", "parameters": {"type": "object", "properties": {}}}
    registry.add(Registered(ToolEntry("lonely", "mcp-one", schema, print), origin="mcp"))
    try:
        view = session_view(ViewRequest(home=hermes_home, settings={}, enabled=["mcp-one"]))
        assert [one.name for one in view.definitions()] == ["lonely"]
        assert view.to_json().startswith("[")
    finally:
        registry.deregister("lonely")
