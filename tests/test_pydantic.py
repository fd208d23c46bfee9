"""pydantic and FastAPI: a value or its row in, its row out, refusals at their place."""

import json

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from hypothesis import given
from pydantic import BaseModel, TypeAdapter, ValidationError

from agui_runs import Interrupt, RunRecord
from builders import FAILURE, T0, make_ask, make_run
from strategies import values

each = pytest.mark.parametrize

ASK = make_ask()
RUN = make_run(snapshot={"items": [1]})
PAUSED = RUN.interrupted([ASK], now=T0)
FAILED = RUN.finish("failed", now=T0, failure=FAILURE)
VALUES = {"interrupt": ASK, "live": RUN, "paused": PAUSED, "failed": FAILED}
each_value = each("value", VALUES.values(), ids=VALUES)


class Page(BaseModel):
    run: RunRecord
    ask: Interrupt | None = None
    asks: list[Interrupt] = []
    by_id: dict[str, Interrupt] = {}
    either: Interrupt | RunRecord | str | None = None


@each_value
def test_an_instance_goes_in(value):
    assert TypeAdapter(type(value)).validate_python(value, strict=True) == value


@each_value
def test_a_row_goes_in(value):
    assert TypeAdapter(type(value)).validate_python(value.to_storage(), strict=True) == value


@each_value
def test_the_json_text_of_a_row_goes_in(value):
    assert TypeAdapter(type(value)).validate_json(json.dumps(value.to_storage())) == value


@each_value
def test_a_row_comes_out_in_python_and_in_json(value):
    adapter = TypeAdapter(type(value))
    assert adapter.dump_python(value) == value.to_storage()
    assert adapter.dump_python(value, mode="json") == value.to_storage()
    assert json.loads(adapter.dump_json(value)) == value.to_storage()


@given(values)
def test_every_value_goes_through_pydantic_and_back(value):
    adapter = TypeAdapter(type(value))
    assert adapter.validate_python(value) == value
    assert adapter.validate_python(adapter.dump_python(value)) == value


def test_a_model_takes_instances_and_rows_wherever_they_stand():
    one = Page(run=RUN, ask=ASK, asks=[ASK], by_id={"ask-1": ASK}, either=PAUSED)
    two = Page(
        run=RUN.to_storage(),
        ask=ASK.to_storage(),
        asks=[ASK.to_storage()],
        by_id={"ask-1": ASK.to_storage()},
        either=PAUSED.to_storage(),
    )
    assert one == two == Page.model_validate_json(one.model_dump_json())


def test_a_model_dumps_rows():
    page = Page(run=PAUSED, ask=ASK, asks=[ASK], by_id={"ask-1": ASK}, either=ASK)
    rows = {
        "run": PAUSED.to_storage(),
        "ask": ASK.to_storage(),
        "asks": [ASK.to_storage()],
        "by_id": {"ask-1": ASK.to_storage()},
        "either": ASK.to_storage(),
    }
    assert page.model_dump() == page.model_dump(mode="json") == rows
    assert json.loads(page.model_dump_json()) == rows


@each("value", [ASK, RUN, "text", None], ids=["interrupt", "record", "text", "none"])
def test_a_union_finds_what_a_row_is(value):
    row = value if value is None or isinstance(value, str) else value.to_storage()
    assert Page(run=RUN, either=row).either == value


def test_a_deep_copy_of_a_model_holds_the_very_values():
    page = Page(run=RUN, asks=[ASK])
    copied = page.model_copy(deep=True)
    assert (copied.run is page.run, copied.asks[0] is page.asks[0]) == (True, True)


BLANK = {**ASK.to_storage(), "id": " "}
REFUSED = [
    ({"run": 7}, ("run",), "run record: the stored value must be a mapping, not int"),
    (
        {"run": {**RUN.to_storage(), "sequence": "1"}},
        ("run",),
        "run record: sequence must be an int, not str",
    ),
    (
        {"run": {**PAUSED.to_storage(), "interrupts": [BLANK]}},
        ("run",),
        "run record: interrupts[0].id must not be blank",
    ),
    ({"run": ASK}, ("run",), "run record: the stored value must be a mapping, not Interrupt"),
    ({"run": RUN, "ask": BLANK}, ("ask",), "interrupt: id must not be blank"),
    ({"run": RUN, "asks": [ASK, BLANK]}, ("asks", 1), "interrupt: id must not be blank"),
    ({"run": RUN, "by_id": {"x": BLANK}}, ("by_id", "x"), "interrupt: id must not be blank"),
]


@each(("given", "place", "said"), REFUSED, ids=[said for *_, said in REFUSED])
def test_a_refusal_is_a_validation_error_at_its_place_in_our_words(given, place, said):
    with pytest.raises(ValidationError) as caught:
        Page(**given)
    [error] = caught.value.errors()
    assert (error["loc"], error["type"], error["msg"]) == (
        place,
        "value_error",
        f"Value error, {said}",
    )


def test_the_fields_of_a_dataclass_are_no_row():
    fields = {"id": "i", "tool_call_id": "c", "arguments_digest": "a", "expires_at": None}
    with pytest.raises(ValidationError, match="interrupt: toolCallId is missing"):
        TypeAdapter(Interrupt).validate_python({**fields, "reason": "tool_call"})


def test_a_model_documents_each_field_by_the_schema_of_its_row():
    documented = Page.model_json_schema()["properties"]
    ask = documented["asks"]["items"]
    assert set(documented["run"]["properties"]) == set(RUN.to_storage())
    assert documented["ask"]["anyOf"] == [ask, {"type": "null"}]
    assert set(ask["properties"]) == set(ASK.to_storage())


# --- FastAPI ------------------------------------------------------------------------------------

app = FastAPI()


@app.get("/paused")
def read_paused() -> RunRecord:
    return PAUSED


@app.get("/runs")
def read_runs() -> list[RunRecord]:
    return [RUN, PAUSED]


@app.get("/page")
def read_page() -> Page:
    return Page(run=FAILED, ask=ASK)


@app.post("/asks")
def write_ask(ask: Interrupt) -> Interrupt:
    return ask


@app.post("/both")
def write_both(ask: Interrupt, run: RunRecord) -> list[str]:
    return [ask.id, run.run_id]


@app.get("/unannotated")
def read_unannotated():
    return PAUSED


CLIENT = TestClient(app)


def test_an_endpoint_returns_a_row():
    assert CLIENT.get("/paused").json() == PAUSED.to_storage()


def test_an_endpoint_returns_a_list_of_rows():
    assert CLIENT.get("/runs").json() == [RUN.to_storage(), PAUSED.to_storage()]


def test_an_endpoint_returns_a_model_that_holds_rows():
    answer = CLIENT.get("/page").json()
    assert (answer["run"], answer["ask"]) == (FAILED.to_storage(), ASK.to_storage())


def test_an_endpoint_takes_a_row():
    answer = CLIENT.post("/asks", json=ASK.to_storage())
    assert (answer.status_code, answer.json()) == (200, ASK.to_storage())


def test_an_endpoint_takes_several_rows():
    body = {"ask": ASK.to_storage(), "run": RUN.to_storage()}
    assert CLIENT.post("/both", json=body).json() == ["ask-1", "run-1"]


@each(
    ("path", "body", "place", "said"),
    [
        ("/asks", BLANK, ["body"], "interrupt: id must not be blank"),
        (
            "/both",
            {"ask": ASK.to_storage(), "run": {**RUN.to_storage(), "status": "done"}},
            ["body", "run"],
            "run record: status must be one of 'reserved', 'started', 'succeeded', "
            "'interrupted', 'cancelled', 'failed', not 'done'",
        ),
    ],
)
def test_a_body_that_cannot_be_right_is_a_422_that_says_where_and_why(path, body, place, said):
    answer = CLIENT.post(path, json=body)
    [error] = answer.json()["detail"]
    assert (answer.status_code, error["loc"], error["msg"]) == (422, place, f"Value error, {said}")


def test_an_endpoint_documents_what_it_takes_and_returns():
    paths = CLIENT.get("/openapi.json").json()["paths"]
    taken = paths["/asks"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    given = paths["/paused"]["get"]["responses"]["200"]["content"]["application/json"]["schema"]
    assert set(taken["properties"]) == set(ASK.to_storage())
    assert set(given["properties"]) == set(PAUSED.to_storage())


def test_without_an_annotation_fastapi_returns_the_fields_and_not_the_row():
    answer = CLIENT.get("/unannotated").json()
    assert {"thread_id", "run_id", "created_at"} <= set(answer)
    assert answer["interrupts"][0]["arguments_digest"] == ASK.arguments_digest
    assert answer["snapshot"] == {"items": [1]}
