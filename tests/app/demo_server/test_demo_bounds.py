"""What one caller sends costs the others little: everything here shares one thread."""

from __future__ import annotations

import time

import pytest

from app.demo_server.polling import PollLimit
from app.demo_server.questions import VALUES_MOST, mismatch

LIST = {
    "type": "object",
    "properties": {"regions": {"type": "array", "items": {"type": "string"}, "maxItems": 3}},
}


@pytest.mark.parametrize("value", [[0] * 400_000, ["x"] * 400_000, [[]] * 400_000])
def test_an_answer_of_very_many_values_is_refused_without_being_looked_through(value):
    began = time.process_time()
    assert mismatch(LIST, {"regions": value}) == f"it holds more than {VALUES_MOST:,} values"
    assert time.process_time() - began < 0.5


def test_an_answer_with_very_many_faults_is_refused_by_the_first_few():
    began = time.process_time()
    assert mismatch(LIST, {"regions": [0] * 4_000}) is not None
    assert time.process_time() - began < 0.5


@pytest.mark.parametrize(
    ("text", "fits"), [("CHG-1234", True), ("CHG-1234\n", False), ("\nCHG-1234", False), ("CHG-12", False)]
)
def test_a_pattern_s_end_is_the_end_of_the_text(text, fits):
    schema = {"type": "string", "pattern": "^CHG-[0-9]{4,6}$"}
    assert (mismatch(schema, text) is None) is fits


def test_the_limit_on_polling_keeps_no_ids():
    limit = PollLimit(1_000, lambda: 0)
    limit.check("local", "t" * 1_000_000)
    assert max(len(key) for key in limit._looks) == 32
