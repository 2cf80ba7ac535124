"""What a tree of children may use: money and time of one grant, model calls of one count, and a model of its own."""

from pathlib import Path
from typing import Any

import pytest

from hermes import AIAgent
from hermes.config import paths
from hermes.models.lent_guard import LEAST_S
from hermes.runtime.guardrails import IterationBudget
from hermes.seams import ModelRequest
from hermes.testing.replies import Reply, calls, fault, says
from hermes.testing.server import ServerThread
from tests.runtime.delegation.scripts import FamilyModel, results

DONE = says("All done.")
PRICES = "providers: {testing: {prices: {scripted: {input: 10.0, output: 30.0}}}}\n"
GRANT_USD = 0.6
GRANT_S = 3.0


def configured(home: Path, text: str) -> None:
    (paths.made(home) / "config.yaml").write_text(text)


def spent_by(store: Any, unit: str, *sessions: str) -> float:
    """What the ledger has of these sessions."""
    rows = store.queries.usage("session", 0.0)
    return sum(float(row[unit] or 0.0) for row in rows if row["session_id"] in sessions)


def busy(request: ModelRequest) -> Reply:
    """One more round of tools, with as much of an answer as it is allowed to write."""
    task = {"id": str(len(request.units)), "content": "x", "status": "pending"}
    most = min(request.options.max_tokens or 5_000, 5_000)
    return calls("todo", todos=[task]).with_usage(input_tokens=3_000, output_tokens=most)


@pytest.mark.parametrize("span", ["turn", "session", "day"])
async def test_children_never_cost_more_than_their_parent_was_granted(store: Any, hermes_home: Path, span: str) -> None:
    configured(hermes_home, f"{PRICES}spending: {{{span}_usd: {GRANT_USD}}}\n")
    tasks = [{"goal": f"Task {n}."} for n in range(3)]
    model = FamilyModel([calls("delegate_task", tasks=tasks), DONE], {one["goal"]: [busy] * 40 for one in tasks})
    agent = AIAgent(model=model, store=store)
    done = await agent.arun_conversation("Go.")
    children = results(done)
    told = sum(one["cost_usd"] for one in children)
    assert 0.1 < told <= GRANT_USD
    assert told == pytest.approx(spent_by(store, "cost_usd", *(one["child_session_id"] for one in children)))
    assert {one["status"] for one in children} == {"failed"}
    assert all("the share of the budget that this task was lent is used up ($" in one["error"] for one in children)
    assert done["final_response"] == "All done."


async def test_children_never_take_more_time_of_models_than_their_parent_was_granted(
    store: Any, hermes_home: Path
) -> None:
    configured(hermes_home, f"spending: {{turn_seconds: {GRANT_S}}}\n")
    tasks = [{"goal": "One."}, {"goal": "Two."}]
    stuck = [fault("stall")] * 20
    model = FamilyModel([calls("delegate_task", tasks=tasks), DONE], {"One.": stuck, "Two.": stuck})
    done = await AIAgent(model=model, store=store).arun_conversation("Go.")
    children = results(done)
    asked = sum(len(model.parts[one["goal"]].requests) for one in tasks)
    assert len(tasks) <= asked <= GRANT_S / LEAST_S  # a call is begun with so much time set aside, or not at all
    assert spent_by(store, "seconds", *(one["child_session_id"] for one in children)) > 0
    assert {one["status"] for one in children} == {"failed"}
    assert all("lent is used up" in one["error"] for one in children)
    # A loop that notices late has spent the rest, which is the parent's own share; then the parent says so.
    assert done["final_response"] == "All done." or "the cap of this turn is reached" in done["error"]


async def test_shared_iterations_are_one_count_for_the_whole_tree(store: Any, hermes_home: Path) -> None:
    configured(hermes_home, "delegation: {share_iterations: true, max_iterations: 2, max_spawn_depth: 2}\n")
    dig = [calls("todo"), says("Dug.")]
    model = FamilyModel(
        [calls("delegate_task", goal="Lead.", role="orchestrator"), DONE],
        {"Lead.": [calls("delegate_task", goal="Dig."), says("Led.")], "Dig.": dig},
    )
    agent = AIAgent(model=model, store=store, max_iterations=20)
    done = await agent.arun_conversation("Go.")
    assert results(done)[0]["summary"] == "Led."
    assert done["final_response"] == "All done."
    assert agent.iteration_budget.used == sum(len(part.requests) for part in model.parts.values()) == 6


async def test_a_tree_that_has_used_up_its_one_count_asks_no_model_for_more_rounds(
    store: Any, hermes_home: Path
) -> None:
    configured(hermes_home, "delegation: {share_iterations: true}\n")
    tasks = [{"goal": "One."}, {"goal": "Two."}]
    endless = [busy] * 20
    model = FamilyModel(
        [calls("delegate_task", tasks=tasks), *[says("I had to stop.")] * 3], {"One.": endless, "Two.": endless}
    )
    agent = AIAgent(model=model, store=store, max_iterations=6)
    done = await agent.arun_conversation("Go.")
    rounds = sum(len(model.parts[one["goal"]].requests) for one in tasks)
    assert agent.iteration_budget.used == 6
    assert 5 <= rounds <= 5 + len(tasks)  # of the count, and one summary of each
    assert {one["exit_reason"] for one in results(done)} == {"max_iterations"}


async def test_a_budget_that_the_caller_hands_in_is_that_of_the_tree_and_of_the_next_turn(store: Any) -> None:
    budget = IterationBudget(5)
    model = FamilyModel(
        [calls("delegate_task", goal="Dig."), DONE, says("Again.")], {"Dig.": [calls("todo"), says("Dug.")]}
    )
    agent = AIAgent(model=model, store=store, iteration_budget=budget)
    await agent.arun_conversation("Go.")
    assert (budget.used, agent.iteration_budget) == (4, budget)


@pytest.mark.parametrize("is_elsewhere", [False, True])
async def test_children_have_the_model_that_the_settings_name(
    store: Any, hermes_home: Path, is_elsewhere: bool
) -> None:
    dug = [] if is_elsewhere else [says("Dug here.")]
    lines = [calls("delegate_task", goal="Dig."), *dug, DONE]
    with ServerThread(lines) as here, ServerThread([says("Dug there.")]) as there:
        other = f", provider: custom, base_url: {there.base_url}, api_key: theirs" if is_elsewhere else ""
        configured(hermes_home, f"delegation: {{model: small{other}}}\n")
        agent = AIAgent(model="large", provider="custom", base_url=here.base_url, api_key="ours", store=store)
        done = await agent.arun_conversation("Go.")
        await agent.aclose()
    (one,) = results(done)
    asked, elsewhere = (
        [(request.json["model"], request.headers["authorization"]) for request in server.requests if request.json]
        for server in (here, there)
    )
    large, small = ("large", "Bearer ours"), ("small", "Bearer theirs" if is_elsewhere else "Bearer ours")
    assert (one["summary"], one["model"]) == ("Dug there." if is_elsewhere else "Dug here.", "small")
    assert asked == ([large, large] if is_elsewhere else [large, small, large])
    assert elsewhere == ([small] if is_elsewhere else [])
