"""Stored values carry names of their own, which do not change with the Python classes."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from types import MappingProxyType

import pytest

import weft
from weft.algebra import codec, stored
from weft.algebra.query import Field, StreamSchema
from weft.algebra.window import Window

STREAM = StreamSchema("bids", (Field("ts", "timestamp"),), "ts", 10)


def test_names_are_part_of_the_format() -> None:
    """A name that is missing here makes older checkpoints unreadable: it may only be added."""
    names = """aggregate aggregation-input aggregation-join aggregation-plan aggregation-source associative attribute bound call condition cut derived-query derived-stream edges
    expression feed field
    fragments input-window invertible join-input join-query joined-aggregate linear literal literal-predicate lookup
    membership network network-node node opaque or-predicate output partial partner plan predicate-set
    query ref retired selection set-query sharing signature stream values weave-group window"""
    assert sorted(codec.stored_names()) == names.split(), "add new names here"
    assert len(codec.stored_names()) == len(stored.NAMES)


def test_no_stored_name_is_the_name_of_a_class() -> None:
    classes = {cls.__name__ for cls in codec.stored_names().values()}
    assert classes & codec.stored_names().keys() == set()


def test_a_value_is_written_under_its_name_and_read_back() -> None:
    text = codec.dumps(STREAM)
    assert json.loads(text)["is"] == "stream"
    assert "StreamSchema" not in text
    assert codec.loads(text) == STREAM


def test_a_read_only_mapping_is_written_like_a_dict() -> None:
    window = Window(60, 60, 0)
    values = MappingProxyType({"a": window})
    assert codec.dumps(values) == codec.dumps({"a": window})
    assert codec.loads(codec.dumps(values)) == {"a": window}


def test_what_occurs_again_is_written_once_and_is_one_object_again() -> None:
    window, field = Window(60, 60, 0), Field("x", "bigint")
    pair = (field, window)
    value = (pair, [pair, window], {"a": window, "b": (field,)}, (), float("nan"), (1, True, None))
    form = codec.encode_by_parts(value)
    assert codec.dumps_by_parts(value).count('"window"') == 1
    back = codec.decode(form)
    assert back[0] is back[1][0] and back[1][1] is back[0][1] is back[2]["a"]
    assert back[2]["b"][0] is back[0][0]
    assert back[4] != back[4]
    assert codec.dumps(back) == codec.dumps(value)


def test_many_values_of_a_class_are_written_field_by_field() -> None:
    type_of = {"x": "bigint", "y": "string"}
    listed = tuple(Field(name, type_of[name]) for name in "xyxxyyxyyx")
    form = codec.encode_by_parts({"fields": listed})
    ((_, rows),) = form["value"]["items"]
    assert (
        rows["is"] == "rows"
        and rows["of"] == "field"
        and rows["columns"]["name"] == [*"xyxxyyxyyx"]
    )
    assert codec.decode(form) == {"fields": listed}
    mixed = (*listed, Window(60, 60, 0))
    assert codec.decode(codec.encode_by_parts(mixed)) == mixed
    twice = (*listed, listed[0])
    back = codec.decode(codec.encode_by_parts(twice))
    assert back == twice and back[0] is back[-1]
    rows["of"] = "pattern"
    with pytest.raises(weft.CheckpointError, match="UNKNOWN_STORED"):
        codec.decode(form)


def test_equal_values_that_are_other_objects_stay_apart() -> None:
    """1 and True are equal, and so are values that differ in them alone."""
    form = codec.encode_by_parts(((1, 2), (True, 2)))
    assert form == {"is": "parts", "parts": [], "value": [[1, 2], [True, 2]]}


def test_two_classes_cannot_claim_one_name() -> None:
    @dataclass(frozen=True)
    class Other:
        x: int

    with pytest.raises(ValueError, match="'window': Window is"):
        codec.register("window", Other)
    with pytest.raises(ValueError, match="uses this name itself"):
        codec.register("dict", Other)
    with pytest.raises(ValueError, match="uses this name itself"):
        codec.register("part", Other)
    with pytest.raises(ValueError, match="stored as 'window' already"):
        codec.register("windows", Window)
    assert codec.stored_names()["window"] is Window


def test_a_class_without_a_name_is_not_stored() -> None:
    @dataclass(frozen=True)
    class Window:
        """Not the algebra's, though its Python name is the same."""

        range: int

    with pytest.raises(TypeError, match="no name"):
        codec.dumps(Window(1))


def test_an_unknown_name_says_that_weft_is_older_than_the_file() -> None:
    with pytest.raises(weft.CheckpointError, match=r"UNKNOWN_STORED.*'pattern'.*Update weft"):
        codec.loads('{"is":"pattern","x":1}')


def test_a_process_that_imports_one_class_reads_all_of_them() -> None:
    program = (
        "import weft.algebra.window, weft.algebra.codec as codec;"
        "print(len(codec.stored_names()), codec.loads(input()).name)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        input=codec.dumps(STREAM),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == [str(len(stored.NAMES)), "bids"]
